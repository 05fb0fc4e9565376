-- The queries of the PostgreSQL store. `{columns}` are the columns of a job (mam.stores.sql.rows); `{set}`, `{names}` and `{values}`
-- write them. Every name has its schema, and no query needs a setting of its session.

-- name: version
-- And whether this server process is the one that the connection was given: behind a pooler it is another.
SELECT version, pg_backend_pid() FROM mam.store

-- name: epoch
SELECT journal_id FROM mam.store

-- name: now
SELECT mam.clock(NULL)

-- name: claim
-- Takes nothing when anything is due, unsettled or paused, or the session was replaced: then the slow path decides. Returns one row:
-- whether it must, and the job if there is one. Two claims of one exclusive key meet at the unique index `job_holder`.
WITH clock AS MATERIALIZED (
    SELECT mam.clock(%(now_ms)s) AS ms
), conditions AS MATERIALIZED (
    SELECT EXISTS (SELECT FROM mam.job WHERE due_ms <= (SELECT ms FROM clock) AND blocked < 2)
           OR EXISTS (SELECT FROM mam.unsettled)
           OR EXISTS (SELECT FROM mam.pause WHERE pause.label IN ('', %(label)s)) AS must_settle
), session AS MATERIALIZED (
    SELECT generation_id FROM mam.session_generation WHERE agent_id = %(agent_id)s FOR SHARE
), head AS MATERIALIZED (
    SELECT number AS first, coalesce(%(lease_seconds)s::double precision, nullif(timeout_sec, 0), 86400) AS seconds
    FROM mam.job
    WHERE label = %(label)s AND status = 'pending' AND blocked = 0 AND host IN ('', %(host)s)
      AND (exclusive IS NULL
           OR NOT EXISTS (SELECT FROM mam.job AS other WHERE other.exclusive = job.exclusive AND other.status = 'running'))
      AND NOT (SELECT must_settle FROM conditions)
      AND (%(agent_id)s::text IS NULL OR EXISTS (SELECT FROM session WHERE generation_id = %(generation_id)s))
    ORDER BY priority DESC, number LIMIT 1 FOR NO KEY UPDATE OF job SKIP LOCKED
), terms AS (
    SELECT first, seconds, ms + round(seconds * 1000)::bigint AS until, mam.second(ms) AS now FROM head, clock
), taken AS (
    UPDATE mam.job
    SET version = version + 1, status = 'running', attempt = attempt + 1, claim_id = %(claim_id)s, owner = %(owner)s,
        supervised = %(supervised)s, claimant_agent = %(agent_id)s, claimant_generation = %(generation_id)s,
        lease_expires_at = mam.milli(until), lease_seconds = seconds, lease_boot_id = '', lease_boot_ms = 0, due_ms = until,
        reason = NULL, said = NULL, result = NULL, checked = NULL,
        claimed_at = now, heard_at = now, updated_at = greatest(now, created_at)
    FROM terms WHERE number = first RETURNING {columns}
), noted AS (
    INSERT INTO mam.journal (number, job, job_id, act_id, fields, lines)
    SELECT mam.next_entry('running ' || job_id || ' ' || label), number, job_id, claim_id,
        json_build_object(
            'attempt', attempt, 'claim_id', claim_id, 'owner', owner,
            'lease', json_build_object('expires_at', lease_expires_at, 'seconds', lease_seconds, 'boot_id', '', 'boot_ms', 0),
            'supervised', supervised,
            'claimant', CASE WHEN claimant_agent IS NOT NULL
                THEN json_build_object('agent_id', claimant_agent, 'generation_id', claimant_generation) END,
            'reason', NULL, 'said', NULL, 'result', NULL, 'checked', NULL,
            'claimed_at', claimed_at, 'heard_at', heard_at, 'status', status, 'updated_at', updated_at),
        json_build_array(json_build_object(
            'timestamp', claimed_at, 'event', 'status_changed', 'job_id', job_id, 'from', 'pending', 'to', status,
            'by', %(by)s::text, 'attempt', attempt, 'owner', owner))
    FROM taken
)
SELECT must_settle, {columns} FROM conditions LEFT JOIN taken ON true

-- name: job by claim
SELECT false, {columns} FROM mam.job WHERE due_ms IS NOT NULL AND blocked < 2 AND status = 'running' AND claim_id = %(claim_id)s

-- name: end
-- What mam.jobs.ending.end does to a running job that concerns no other; none when that rule has to look.
WITH ended AS (
    UPDATE mam.job
    SET version = version + 1, status = %(status)s, ended_attempt = %(attempt)s, result = %(result)s, reason = %(reason)s,
        checked = CASE WHEN %(status)s = 'completed' THEN coalesce(%(checked)s, expected_artifacts::text <> '[]') END,
        run = CASE WHEN %(supervised)s THEN %(run)s ELSE run END, checks = CASE WHEN %(supervised)s THEN %(checks)s ELSE checks END,
        lease_expires_at = NULL, lease_seconds = NULL, lease_boot_id = NULL, lease_boot_ms = NULL, due_ms = NULL,
        claimant_agent = NULL, claimant_generation = NULL, supervised = false, ended_at = now, last_seq = last_seq + 1,
        waiting_for = NULL, due_at = NULL, updated_at = greatest(now, created_at)
    FROM (SELECT mam.second(mam.clock(%(now_ms)s)) AS now) AS clock
    WHERE job_id = %(job_id)s AND status = 'running' AND attempt = %(attempt)s
      AND (%(claim_id)s::text IS NULL OR claim_id IS NULL OR claim_id = %(claim_id)s)
      AND supervised = %(supervised)s AND NOT (%(supervised)s AND said IS NOT NULL)
      AND NOT awaited AND exclusive IS NULL AND asking = 0 AND blocked < 2
      AND NOT (%(artifacts_unchecked)s AND expected_artifacts::text <> '[]')
    RETURNING {columns}
), noted AS (
    INSERT INTO mam.journal (number, job, job_id, act_id, fields, lines)
    SELECT mam.next_entry(status || ' ' || job_id || ' ' || label), number, job_id, %(act_id)s,
        json_build_object(
            'ended_attempt', ended_attempt, 'result', result, 'reason', reason, 'checked', checked, 'run', run, 'checks', checks,
            'lease', NULL, 'claimant', NULL, 'supervised', supervised, 'ended_at', ended_at, 'last_seq', last_seq,
            'waiting_for', NULL, 'due_at', NULL, 'status', status, 'updated_at', updated_at),
        json_build_array(
            json_strip_nulls(json_build_object(
                'timestamp', ended_at, 'event', 'status_changed', 'job_id', job_id, 'from', 'running', 'to', status,
                'by', %(by)s::text, 'attempt', nullif(attempt, 0), 'reason', reason)),
            json_build_object('timestamp', ended_at, 'event', 'published', 'job_id', job_id, 'payload', json_build_object(
                'schema_version', 1, 'seq', last_seq, 'job_id', job_id, 'event', status, 'timestamp', ended_at,
                'detail', %(detail)s::text, 'data', json_build_object('status', status))))
    FROM ended
)
SELECT {columns} FROM ended

-- name: revert claim
-- A claimed row that mam cannot read goes back and is set aside.
WITH back AS (
    UPDATE mam.job
    SET version = version + 1, status = 'pending', blocked = 2, owner = NULL, supervised = false, due_ms = NULL,
        claimant_agent = NULL, claimant_generation = NULL,
        lease_expires_at = NULL, lease_seconds = NULL, lease_boot_id = NULL, lease_boot_ms = NULL
    WHERE number = %(number)s AND status = 'running' AND claim_id = %(claim_id)s RETURNING number, job_id, claimed_at
)
INSERT INTO mam.journal (number, job, job_id, fields, lines)
SELECT mam.next_entry('unreadable ' || job_id || ' '), number, job_id,
    '{"owner": null, "lease": null, "claimant": null, "supervised": false, "status": "pending"}',
    json_build_array(json_build_object('timestamp', claimed_at, 'event', 'status_changed', 'job_id', job_id,
                                       'from', 'running', 'to', 'pending', 'by', 'unreadable'))
FROM back

-- name: job and time
SELECT mam.clock(%(now_ms)s), {columns} FROM mam.job WHERE job_id = %(job_id)s

-- name: update job and journal
-- Row and entry of an act that was decided on this version of the row.
WITH written AS (
    UPDATE mam.job SET version = version + 1, {set} WHERE number = %(number)s AND version = %(version)s RETURNING number
)
INSERT INTO mam.journal (number, job, job_id, act_id, fields, lines)
SELECT mam.next_entry(%(news)s), number, %(job_id)s, %(act_id)s, %(fields)s, %(lines)s FROM written RETURNING number

-- name: next number and time
SELECT CASE WHEN NOT taken THEN nextval('mam.job_number') END, mam.clock(%(now_ms)s)
FROM (SELECT EXISTS (SELECT FROM mam.job WHERE job_id = %(job_id)s)
             OR EXISTS (SELECT FROM mam.archive WHERE job_id = %(job_id)s) AS taken) AS found

-- name: insert job and journal
WITH written AS (INSERT INTO mam.job ({names}) VALUES ({values}) RETURNING number)
INSERT INTO mam.journal (number, job, job_id, act_id, fields, lines)
SELECT mam.next_entry(%(news)s), number, %(job_id)s, %(act_id)s, %(fields)s, %(lines)s FROM written

-- name: reserve numbers
SELECT nextval('mam.job_number') FROM generate_series(1, %(count)s)

-- name: taken ids
SELECT job_id FROM mam.job WHERE job_id IN (SELECT json_array_elements_text(%(job_ids)s::json))
UNION ALL SELECT job_id FROM mam.archive WHERE job_id IN (SELECT json_array_elements_text(%(job_ids)s::json)) LIMIT 1

-- name: entry of act
SELECT 1 FROM mam.journal WHERE job = %(job)s AND act_id = %(act_id)s

-- name: number
SELECT number FROM mam.job WHERE job_id = %(job_id)s UNION ALL SELECT number FROM mam.archive WHERE job_id = %(job_id)s

-- name: lock
-- Until the transaction ends: an exclusive key, or a chain of retries by its root.
SELECT pg_advisory_xact_lock(hashtextextended(%(name)s::text, 7168365))

-- name: lock keys of jobs
SELECT pg_advisory_xact_lock(hashtextextended('key ' || exclusive, 7168365))
FROM (SELECT DISTINCT exclusive FROM mam.job
      WHERE job_id IN (SELECT json_array_elements_text(%(job_ids)s::json)) AND exclusive IS NOT NULL ORDER BY exclusive) AS keys

-- name: lock keys to sweep
-- The exclusive keys of the jobs that a sweep may move, always in this order and before any row.
SELECT exclusive, pg_advisory_xact_lock(hashtextextended('key ' || exclusive, 7168365))
FROM (SELECT DISTINCT exclusive FROM (
          (SELECT exclusive FROM mam.job WHERE due_ms <= %(wall_ms)s AND blocked < 2 ORDER BY due_ms, number LIMIT %(limit)s)
          UNION ALL
          (SELECT exclusive FROM mam.unsettled JOIN mam.dependency ON needs = unsettled.root AND dependency.number > upto
           JOIN mam.job USING (job_id) WHERE unsettled.root = (SELECT min(root) FROM mam.unsettled)
           ORDER BY dependency.number LIMIT %(limit)s)
      ) AS moving WHERE exclusive IS NOT NULL ORDER BY exclusive) AS keys

-- name: next number
SELECT nextval('mam.job_number')

-- name: claim conditions
SELECT EXISTS (SELECT FROM mam.job WHERE due_ms <= %(wall_ms)s AND blocked < 2), EXISTS (SELECT FROM mam.unsettled),
       EXISTS (SELECT FROM mam.pause)

-- name: due
SELECT {columns} FROM mam.job
WHERE due_ms <= %(wall_ms)s AND blocked < 2
  AND (exclusive IS NULL OR exclusive IN (SELECT json_array_elements_text(%(keys)s::json)))
ORDER BY due_ms, number LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED

-- name: next due
SELECT ms, (SELECT min(due_ms) FROM mam.job WHERE due_ms IS NOT NULL AND blocked < 2) - ms,
       EXISTS (SELECT FROM mam.unsettled), EXISTS (SELECT FROM mam.pause)
FROM mam.clock(%(now_ms)s) AS ms

-- name: update prompt
UPDATE mam.job SET prompt = %(prompt)s WHERE number = %(number)s

-- name: insert entry
INSERT INTO mam.journal (number, job, job_id, act_id, fields, lines)
VALUES (mam.next_entry(%(news)s), %(job)s, %(job_id)s, %(act_id)s, %(fields)s, %(lines)s)

-- name: insert next entry
-- The second and later entries of a transaction, which has its place in the order.
INSERT INTO mam.journal (job, job_id, act_id, fields, lines) VALUES (%(job)s, %(job_id)s, %(act_id)s, %(fields)s, %(lines)s)
RETURNING mam.tell(%(news)s)

-- name: insert next entry, many
INSERT INTO mam.journal (job, job_id, act_id, fields, lines)
SELECT job, job_id, act_id, fields::json, lines::json
FROM json_to_recordset(%(rows)s::json) AS given (job bigint, job_id text, act_id text, fields text, lines text)

-- name: tell many
SELECT mam.tell(news) FROM json_array_elements_text(%(news)s::json) AS news

-- name: replace entry, many
UPDATE mam.journal SET fields = given.fields::json, lines = given.lines::json
FROM json_to_recordset(%(rows)s::json) AS given (number bigint, fields text, lines text) WHERE journal.number = given.number

-- name: tell
SELECT mam.tell(%(news)s)

-- name: entries
SELECT number, job_id, fields, lines FROM mam.entries(%(after)s, %(upto)s, %(limit)s)

-- name: listen
LISTEN mam_news

-- name: begin to listen
SELECT pg_advisory_lock_shared(7168365, 2), pg_backend_pid()

-- name: last writer
SELECT max(key) FROM mam.writer

-- name: earlier writers
SELECT 1 FROM mam.writer WHERE key <= %(key)s LIMIT 1

-- name: wait for label
SELECT pg_advisory_lock_shared(7168364, hashtext(%(label)s))

-- name: confirm
SELECT pg_logical_emit_message(true, 'mam', '')

-- name: newest entry
SELECT number, job_id, lines FROM mam.newest_entry()

-- name: notify channel
SELECT pg_notify(%(channel)s, '')

-- name: unblock heads
-- The first of each agent and host of a label; one step for each, however many wait.
WITH RECURSIVE head (number, label, agent, host) AS (
    (SELECT number, label, agent, host FROM mam.job WHERE exclusive = %(key)s AND status = 'pending' AND blocked < 2
     ORDER BY label, agent, host, priority DESC, number LIMIT 1)
    UNION ALL
    SELECT next.number, next.label, next.agent, next.host
    FROM head, LATERAL (SELECT number, label, agent, host FROM mam.job
                        WHERE exclusive = %(key)s AND status = 'pending' AND blocked < 2
                          AND (job.label, job.agent, job.host) > (head.label, head.agent, head.host)
                        ORDER BY label, agent, host, priority DESC, number LIMIT 1) AS next
)
UPDATE mam.job SET blocked = 0 WHERE number IN (SELECT number FROM head)

-- name: mark awaited
-- All jobs of the chain of retries that a job belongs to. The new version stops an act that was decided on the old one.
WITH chain AS (
    SELECT coalesce((SELECT root FROM mam.job WHERE job_id = %(job_id)s),
                    (SELECT root FROM mam.archive WHERE job_id = %(job_id)s), %(job_id)s) AS first
)
UPDATE mam.job SET awaited = true, version = version + 1
WHERE NOT awaited AND number IN (SELECT number FROM mam.job, chain WHERE job_id = first
                                 UNION ALL SELECT number FROM mam.job, chain WHERE root = first)

-- name: lock generation
SELECT 1 FROM mam.session_generation WHERE agent_id = %(agent_id)s FOR SHARE

-- name: insert archived, many
INSERT INTO mam.archive (job_id, number, key, retry_of, continues, root, record, events)
SELECT job_id, number, key, retry_of, continues, root, record::json, events::json
FROM json_to_recordset(%(rows)s::json) AS given (job_id text, number bigint, key text, retry_of text, continues text, root text,
                                                 record text, events text)
ON CONFLICT (job_id) DO UPDATE SET record = excluded.record, events = excluded.events

-- name: advance numbers
-- Numbers continue after the highest one.
SELECT setval('mam.job_number', greatest(%(number)s, last_value), is_called OR %(number)s >= last_value) FROM mam.job_number

-- name: keep secret
INSERT INTO mam.secret (job_id, name, secret) VALUES (%(job_id)s, %(name)s, %(secret)s)
ON CONFLICT (job_id, name) DO UPDATE SET secret = excluded.secret

-- name: secrets
-- And a row without a name if there are some that this role may not read.
WITH own AS (SELECT name, secret FROM mam.secret WHERE job_id = %(job_id)s)
SELECT name, secret FROM own
UNION ALL SELECT NULL, NULL WHERE mam.count_secrets(%(job_id)s) > (SELECT count(*) FROM own)

-- name: relay lock is free
-- Held until the end of the statement: those who only ask share it, and so do not see each other.
SELECT pg_try_advisory_xact_lock_shared(hashtextextended(%(name)s::text, %(space)s))

-- name: end backend
-- A server process whose answer was lost: it must do nothing more.
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE pid = %(process)s AND usename = current_user AND application_name = 'mam' AND pid <> pg_backend_pid()
  AND (%(began)s::text IS NULL OR xact_start = %(began)s::timestamptz)

-- name: begin import
-- A version below zero: no store opens but the one that is filled. Answers nothing if there are jobs of another origin.
UPDATE mam.store SET version = -abs(version)
WHERE version < 0 OR NOT (EXISTS (SELECT FROM mam.job) OR EXISTS (SELECT FROM mam.archive))
RETURNING version

-- name: finish import
UPDATE mam.store SET version = abs(version)

-- name: append output
-- The row of the job is locked, so that no newer claim comes before this write. A repeated piece may be longer.
WITH clock AS MATERIALIZED (
    SELECT mam.clock(%(now_ms)s) AS ms
), holder AS MATERIALIZED (
    SELECT FROM mam.job
    WHERE job_id = %(job_id)s AND attempt = %(attempt)s AND coalesce(claim_id = %(claim_id)s, true) FOR SHARE
), added AS (
    INSERT INTO mam.output_piece (job_id, attempt, start, data, made_ms)
    SELECT %(job_id)s, %(attempt)s, %(start)s, %(data)s, ms FROM holder, clock
    ON CONFLICT (job_id, attempt, start) DO UPDATE SET data = excluded.data
    WHERE length(excluded.data) > length(output_piece.data)
), dropped AS (
    DELETE FROM mam.output_piece
    WHERE job_id = %(job_id)s AND attempt = %(attempt)s AND start >= %(head)s AND start + length(data) <= %(keep_from)s
      AND EXISTS (SELECT FROM holder)
)
SELECT 1 FROM holder

-- name: output
SELECT start, data FROM mam.output_piece
WHERE job_id = %(job_id)s AND attempt = %(attempt)s AND start + length(data) > %(since)s AND start > %(after)s
ORDER BY start LIMIT %(limit)s

-- name: put output file
WITH clock AS MATERIALIZED (
    SELECT mam.clock(%(now_ms)s) AS ms
), holder AS MATERIALIZED (
    SELECT FROM mam.job
    WHERE job_id = %(job_id)s AND attempt = %(attempt)s AND coalesce(claim_id = %(claim_id)s, true) FOR SHARE
), content AS (
    INSERT INTO mam.output_content (sha256, data, made_ms)
    SELECT %(sha256)s, %(data)s, ms FROM holder, clock WHERE %(is_stored)s
    ON CONFLICT (sha256) DO UPDATE SET made_ms = excluded.made_ms
)
INSERT INTO mam.output_file (job_id, attempt, kind, path, size, sha256, is_stored, made_ms)
SELECT %(job_id)s, %(attempt)s, %(kind)s, %(path)s, %(size)s, %(sha256)s, %(is_stored)s, ms FROM holder, clock
ON CONFLICT (job_id, attempt, kind, path) DO UPDATE
SET size = excluded.size, sha256 = excluded.sha256, is_stored = excluded.is_stored, made_ms = excluded.made_ms
RETURNING 1

-- name: output file
SELECT data FROM mam.output_file JOIN mam.output_content USING (sha256)
WHERE job_id = %(job_id)s AND attempt = %(attempt)s AND kind = %(kind)s AND path = %(path)s AND is_stored

-- name: output files
SELECT attempt, kind, path, size, sha256, is_stored FROM mam.output_file
WHERE job_id = %(job_id)s ORDER BY attempt, kind, path

-- name: expire output pieces
DELETE FROM mam.output_piece WHERE ctid = ANY (ARRAY(SELECT ctid FROM mam.output_piece WHERE made_ms < %(before)s LIMIT %(limit)s))
RETURNING 1

-- name: expire output files
DELETE FROM mam.output_file WHERE made_ms < %(before)s RETURNING 1

-- name: expire output contents
-- A use that comes at the same time makes the content new again.
DELETE FROM mam.output_content WHERE made_ms < %(before)s RETURNING 1

-- name: delete entries
DELETE FROM mam.journal WHERE number IN (SELECT json_array_elements_text(%(numbers)s::json)::bigint)
