-- Queries that hold rows end with the id of their transaction: by it, a commit that was not answered is asked for.
-- Before a row with an exclusive key is held, its key is: whoever holds a key may write all rows of it without waiting
-- for anyone. A claim and a sweep try, and pass over what they cannot have; others wait.

-- name: journal id
SELECT journal_id FROM store

-- name: version
-- And whether the journal's last transaction is one that this server has not reached yet, as after loading a dump.
SELECT version, (SELECT xact >= pg_snapshot_xmax(pg_current_snapshot()) FROM journal ORDER BY xact DESC, number DESC LIMIT 1)
FROM store

-- name: now
SELECT (date_part('epoch', clock_timestamp()) * 1000)::bigint

-- name: job
SELECT record, prompt FROM job WHERE job_id = %(job_id)s

-- name: job to change
-- The time of after the wait for the row, which is why it is asked for outside.
SELECT record, prompt, root, (date_part('epoch', clock_timestamp()) * 1000)::bigint, pg_current_xact_id()::text
FROM (
    SELECT record, prompt, root FROM job
    WHERE job_id = %(job_id)s
      AND (exclusive IS NULL OR pg_advisory_xact_lock(hashtextextended(exclusive, 0)) IS NOT NULL)
    FOR UPDATE
) AS held

-- name: jobs to change
-- `newer`: written by a transaction that began after this one; followers would meet the two in the wrong order.
SELECT record, prompt, root, age(written) < 0, pg_current_xact_id()::text
FROM (
    SELECT record, prompt, root, number, xmin AS written FROM job
    WHERE job_id IN (SELECT json_array_elements_text(%(job_ids)s::json))
      AND (exclusive IS NULL OR pg_advisory_xact_lock(hashtextextended(exclusive, 0)) IS NOT NULL)
    ORDER BY number
    FOR UPDATE
) AS held
ORDER BY number

-- name: place
-- For a new job: the one registered in its place before; whether its id is taken; its number, and its root. Lock 3 is
-- shared by those who have a number and are not done yet (`nobody registers`).
WITH known AS MATERIALIZED (
    SELECT record, prompt FROM rare JOIN job USING (job_id) WHERE key = %(key)s
    UNION ALL
    SELECT record, prompt FROM rare JOIN job USING (job_id) WHERE retry_of = %(retry_of)s
    UNION ALL
    SELECT record, prompt FROM archive WHERE key = %(key)s
    UNION ALL
    SELECT record, prompt FROM archive WHERE retry_of = %(retry_of)s
    LIMIT 1
)
SELECT (SELECT record FROM known), (SELECT prompt FROM known),
       EXISTS (SELECT FROM job WHERE job_id = %(job_id)s) OR EXISTS (SELECT FROM archive WHERE job_id = %(job_id)s),
       CASE WHEN EXISTS (SELECT FROM known) THEN NULL
            WHEN pg_advisory_xact_lock_shared(7168365, 3) IS NOT NULL THEN nextval('job_number') END,
       coalesce((SELECT root FROM job WHERE job_id = %(retry_of)s),
                (SELECT root FROM archive WHERE job_id = %(retry_of)s), %(retry_of)s)::text,
       (date_part('epoch', clock_timestamp()) * 1000)::bigint, pg_current_xact_id()::text

-- name: lock key
SELECT pg_advisory_xact_lock(hashtextextended(%(key)s::text, 0))

-- name: mark roots
-- Of those that a new job comes after, before they are held: an end in one trip looks for nobody but at this. The first
-- that comes hides them from claims until it is committed; whoever waits for one of them looks once more.
UPDATE job SET awaited = true
FROM (
    SELECT job_id FROM job
    WHERE NOT awaited
      AND job_id IN (SELECT coalesce(root, job_id) FROM job
                     WHERE job_id IN (SELECT json_array_elements_text(%(job_ids)s::json)))
    ORDER BY job_id
    FOR NO KEY UPDATE
) AS held
WHERE job.job_id = held.job_id
RETURNING CASE WHEN status = 'pending' THEN {news} END

-- name: lock roots
-- Whoever ends one of them waits, and then sees that somebody came after it.
SELECT job_id, pg_current_xact_id()::text FROM (
    SELECT job_id FROM job
    WHERE job_id IN (SELECT coalesce(root, job_id) FROM job
                     WHERE job_id IN (SELECT json_array_elements_text(%(job_ids)s::json)))
    ORDER BY job_id
    FOR KEY SHARE
) AS held

-- name: lock root
SELECT FROM job WHERE job_id = %(root)s FOR UPDATE

-- name: ready
-- The first that may be claimed, and whether anything stands before it: somebody's time has come, an end has not been
-- told to all yet, something is paused here. The rest is as in `look`; with no job, or with something before it, that
-- is asked.
SELECT record, prompt, root, (date_part('epoch', statement_timestamp()) * 1000)::bigint,
       EXISTS (SELECT FROM job
               WHERE due_ms <= (date_part('epoch', statement_timestamp()) * 1000)::bigint AND blocked < 2)
       OR EXISTS (SELECT FROM unsettled) OR EXISTS (SELECT FROM pause WHERE label IN ('', %(label)s)),
       pg_current_xact_id()::text
FROM (
    SELECT record, prompt, root FROM job
    WHERE label = %(label)s AND blocked = 0
      AND (exclusive IS NULL OR pg_try_advisory_xact_lock(hashtextextended(exclusive, 0)))
    ORDER BY priority DESC, number LIMIT 1
    FOR NO KEY UPDATE SKIP LOCKED
) AS held

-- name: claim fresh
-- The whole claim in one trip, if the first that may be claimed is as it was registered and nothing stands before it
-- (mam.stores.postgres.fresh). 103: what stands around the id before the first thing that a claim leaves alone. By its
-- place in the table: a row that somebody has written since this began has another, and then nothing happens here.
-- `soon`: no earlier than the server's time, if `now` is believed. In one condition with the seal: alone, what stands
-- before a claim would be asked by a step of the plan of its own.
WITH taken AS (
    UPDATE job
    SET status = 'running', blocked = -1, due_ms = %(due_ms)s,
        record = '{"job_id":"' || job_id || '","status":"running","created_at":"' || created_at || %(written)s
                 || right(record, -103 - length(job_id))
    WHERE ctid = (SELECT ctid FROM job
                  WHERE label = %(label)s AND blocked = 0 {from}
                  ORDER BY priority DESC, number LIMIT 1
                  FOR NO KEY UPDATE SKIP LOCKED)
      AND created_at <= %(second)s AND abs(date_part('epoch', clock_timestamp()) - %(now)s) < 1
      AND seal = CASE WHEN NOT EXISTS (SELECT FROM job WHERE due_ms <= %(soon)s AND blocked < 2) AND {clear}
                 THEN hashtextextended(record || label, %(timeout_sec)s) END
    RETURNING job_id, record, prompt, root
), noted AS (
    INSERT INTO journal (job_id, fields, said, token)
    SELECT job_id, %(fields)s, %(said_before)s || job_id || %(said_behind)s, %(token)s FROM taken
)
SELECT record, prompt, root, date_part('epoch', clock_timestamp()), pg_current_xact_id() FROM taken

-- name: clear
-- A part of it: no end is still to be told, and nothing is paused here.
NOT EXISTS (SELECT FROM unsettled) AND NOT EXISTS (SELECT FROM pause WHERE label IN ('', %(label)s))

-- name: from the line
-- Parts of the same for whoever knows where the line begins (mam.stores.postgres.line): it does not walk over what the
-- claims before it have left in the index until the server's vacuum comes,
AND priority = %(priority)s AND number >= %(number)s

-- name: same line
-- and whatever stands before it has moved the line.
(SELECT moves FROM store WHERE one = 1) = %(moves)s

-- name: nobody registers
-- Before `line`, in the same transaction: whoever has a number already could still come in before the first. Others who
-- register wait meanwhile, so a look that takes long is given up.
SELECT set_config('mam.nobody_registers', pg_try_advisory_xact_lock(7168365, 3)::text, true),
       set_config('statement_timeout', '50ms', true)

-- name: line
-- Where it begins: at the first that is pending, whether somebody has it in hand or not. New jobs come in behind it if
-- their priority is 0 or less; whatever else becomes pending moves the line. Answers nothing where it cannot be known.
SELECT moves, priority, number
FROM store CROSS JOIN LATERAL (
    SELECT priority, number FROM job WHERE label = %(label)s AND blocked = 0 ORDER BY priority DESC, number LIMIT 1
) AS first
WHERE priority >= 0 AND current_setting('mam.nobody_registers') = 'true' AND {clear}

-- name: move line
-- At the very end of an act, since all who do wait for each other here. An end moves it if somebody is to be told of it.
UPDATE store SET moves = moves + 1 WHERE %(surely)s::boolean OR EXISTS (SELECT FROM unsettled)

-- name: claimed
-- Whether such a claim has happened whose answer was lost.
SELECT record, prompt, root, date_part('epoch', clock_timestamp()), xact
FROM journal JOIN job USING (job_id) WHERE xact >= %(xact)s::xid8 AND token = %(token)s

-- name: end conversation
-- A process of the server that does not know yet that its connection is lost may still do what it was told. It is older
-- than the one that is asked here; a younger one has only got its number.
SELECT pg_terminate_backend(lost.pid) FROM pg_stat_activity AS lost JOIN pg_stat_activity AS mine ON mine.pid = pg_backend_pid()
WHERE lost.pid = %(process)s AND lost.application_name = mine.application_name AND lost.usename = mine.usename
  AND lost.backend_start < mine.backend_start

-- name: look
-- All that a claim has to know, by the server's clock: the time; what is due by it; whether those that come after a job
-- that has ended are still to be told; whether something is paused here; and else the first that may be claimed.
-- SKIP LOCKED: what another claimer has in its hands is as good as gone. NO KEY UPDATE: a registration that only holds a
-- job so that it cannot end meanwhile hides it from nobody.
WITH clock AS MATERIALIZED (
    SELECT (date_part('epoch', clock_timestamp()) * 1000)::bigint AS now
), due AS MATERIALIZED (
    SELECT due_ms, record, prompt, root, xmin AS written FROM job
    WHERE due_ms <= (SELECT now FROM clock) AND blocked < 2
      AND (exclusive IS NULL OR pg_try_advisory_xact_lock(hashtextextended(exclusive, 0)))
    ORDER BY due_ms LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
), hindrance AS MATERIALIZED (
    SELECT %(limit)s > 0 AND EXISTS (SELECT FROM unsettled) AS unsettled,
           EXISTS (SELECT FROM pause WHERE label IN ('', %(label)s)) AS paused
), first AS MATERIALIZED (
    SELECT record, prompt, root FROM job
    WHERE label = %(label)s AND blocked = 0
      AND NOT EXISTS (SELECT FROM due) AND NOT (SELECT unsettled OR paused FROM hindrance)
      AND (exclusive IS NULL OR pg_try_advisory_xact_lock(hashtextextended(exclusive, 0)))
    ORDER BY priority DESC, number LIMIT 1
    FOR NO KEY UPDATE SKIP LOCKED
)
SELECT 'now', now, unsettled::text, paused::text, NULL, NULL FROM clock, hindrance
UNION ALL
SELECT 'due', NULL, record, prompt, root, pg_current_xact_id()::text FROM due WHERE age(written) >= 0
UNION ALL
SELECT 'first', NULL, record, prompt, root, pg_current_xact_id()::text FROM first

-- name: first pending
SELECT record, prompt, root, pg_current_xact_id()::text FROM (
    SELECT record, prompt, root FROM job
    WHERE label = %(label)s AND blocked = 0
      AND (exclusive IS NULL OR pg_try_advisory_xact_lock(hashtextextended(exclusive, 0)))
    ORDER BY priority DESC, number LIMIT 1
    FOR NO KEY UPDATE SKIP LOCKED
) AS held

-- name: first of others
-- From agent to agent, so that ten thousand jobs of one that is paused are one step.
WITH RECURSIVE agents (agent) AS (
    SELECT min(agent) FROM job WHERE label = %(label)s AND blocked = 0
    UNION ALL
    SELECT (SELECT min(job.agent) FROM job
            WHERE label = %(label)s AND blocked = 0 AND job.agent > agents.agent)
    FROM agents WHERE agents.agent IS NOT NULL
)
SELECT record, prompt, root, pg_current_xact_id()::text
FROM agents CROSS JOIN LATERAL (
    SELECT record, prompt, root, priority, number, xmin AS written FROM job
    WHERE label = %(label)s AND job.agent = agents.agent AND blocked = 0
      AND (exclusive IS NULL OR pg_try_advisory_xact_lock(hashtextextended(exclusive, 0)))
    ORDER BY priority DESC, number LIMIT 1
    FOR NO KEY UPDATE SKIP LOCKED
) AS head
WHERE agents.agent NOT IN (SELECT json_array_elements_text(%(skipped)s::json)) AND age(written) >= 0
ORDER BY priority DESC, number LIMIT 1

-- name: this pending
SELECT record, prompt, root, pg_current_xact_id()::text FROM (
    SELECT record, prompt, root FROM job
    WHERE job_id = %(job_id)s AND label = %(label)s AND blocked = 0
      AND agent NOT IN (SELECT json_array_elements_text(%(skipped)s::json))
      AND (exclusive IS NULL OR pg_try_advisory_xact_lock(hashtextextended(exclusive, 0)))
    FOR NO KEY UPDATE SKIP LOCKED
) AS held

-- name: due
-- By clocks that were passed in, as tests do. Behind them, rows that are no jobs: an end has not been told to all yet;
-- something is paused.
SELECT late, record, prompt, root, pg_current_xact_id()::text FROM (
    SELECT %(boot_ms)s::bigint - boot_ms AS late, record, prompt, root FROM job
    WHERE due_ms IS NOT NULL AND boot_id = %(boot_id)s AND boot_ms <= %(boot_ms)s AND blocked < 2
      AND (exclusive IS NULL OR pg_try_advisory_xact_lock(hashtextextended(exclusive, 0)))
    ORDER BY boot_ms LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
) AS by_boot
UNION ALL
SELECT late, record, prompt, root, pg_current_xact_id()::text FROM (
    SELECT %(wall_ms)s::bigint - due_ms AS late, record, prompt, root FROM job
    WHERE due_ms <= %(wall_ms)s AND boot_id IS DISTINCT FROM %(boot_id)s AND blocked < 2
      AND (exclusive IS NULL OR pg_try_advisory_xact_lock(hashtextextended(exclusive, 0)))
    ORDER BY due_ms LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
) AS by_wall
UNION ALL
SELECT NULL, 'unsettled', NULL, NULL, NULL WHERE EXISTS (SELECT FROM unsettled)
UNION ALL
SELECT NULL, 'paused', NULL, NULL, NULL WHERE EXISTS (SELECT FROM pause)

-- name: next due
SELECT (SELECT min(boot_ms) FROM job WHERE due_ms IS NOT NULL AND boot_id = %(boot_id)s AND blocked < 2)
           - %(boot_ms)s::bigint,
       (SELECT min(due_ms) FROM job WHERE due_ms IS NOT NULL AND boot_id IS DISTINCT FROM %(boot_id)s AND blocked < 2)
           - %(wall_ms)s::bigint,
       (SELECT 0 WHERE EXISTS (SELECT FROM unsettled))

-- name: news
-- A part of those that write. Those who wait are told only when a job may be claimed or has ended, and only if there are
-- any: a notification makes commits wait for each other. Lock 1 is shared by those who listen; lock 2 by those who have
-- looked for them and are not done yet (`listen`).
CASE WHEN pg_advisory_xact_lock_shared(7168365, 2) IS NULL THEN NULL
     WHEN pg_try_advisory_lock(7168365, 1) THEN pg_advisory_unlock(7168365, 1)
     ELSE pg_notify('mam_news', '') IS NOT NULL END

-- name: blocked
-- A part of those that write: nobody claims what is not pending.
CASE WHEN %(status)s = 'pending' THEN %(blocked)s ELSE -1 END

-- name: insert job
-- With its entry in the journal, as all that writes a job: one statement is half the work of two.
WITH made AS (
    INSERT INTO job
        (job_id, number, status, label, agent, priority, created_at, root, exclusive, blocked,
         due_ms, boot_id, boot_ms, awaited, prompt, record, seal)
    VALUES
        (%(job_id)s, %(number)s, %(status)s, %(label)s, %(agent)s, %(priority)s, %(created_at)s, %(root)s,
         %(exclusive)s, {blocked}, %(due_ms)s, %(boot_id)s, %(boot_ms)s,
         EXISTS (SELECT FROM dependency WHERE needs = %(job_id)s), %(prompt)s, %(record)s,
         hashtextextended(%(record)s::text || %(label)s::text, %(timeout_to_seal)s))
), placed AS (
    INSERT INTO numbered (number, job_id) VALUES (%(number)s, %(job_id)s)
)
INSERT INTO journal (job_id, fields, said) VALUES (%(job_id)s, %(fields)s, %(lines)s)
RETURNING CASE WHEN %(news)s::boolean THEN {news} END

-- name: update job
WITH updated AS (
    UPDATE job
    SET status = %(status)s, blocked = {blocked}, due_ms = %(due_ms)s, boot_id = %(boot_id)s, boot_ms = %(boot_ms)s,
        record = %(record)s
    WHERE job_id = %(job_id)s
)
INSERT INTO journal (job_id, fields, said) VALUES (%(job_id)s, %(fields)s, %(lines)s)
RETURNING CASE WHEN %(news)s::boolean THEN {news} END

-- name: update job and tell
WITH updated AS (
    UPDATE job
    SET status = %(status)s, blocked = {blocked}, due_ms = %(due_ms)s, boot_id = %(boot_id)s, boot_ms = %(boot_ms)s,
        record = %(record)s
    WHERE job_id = %(job_id)s
), told AS (
    INSERT INTO event (job_id, seq, event) VALUES (%(job_id)s, %(seq)s, %(event)s)
)
INSERT INTO journal (job_id, fields, said) VALUES (%(job_id)s, %(fields)s, %(lines)s)
RETURNING CASE WHEN %(news)s::boolean THEN {news} END

-- name: insert rare
-- Of a job that has what few have (`is_rare`).
INSERT INTO rare
    (job_id, number, key, retry_of, root, parent, exclusive, label, agent, priority, status, claimant_agent)
VALUES (%(job_id)s, %(number)s, %(key)s, %(retry_of)s, %(root)s, %(parent)s, %(exclusive)s, %(label)s, %(agent)s,
        %(priority)s, %(status)s, %(claimant_agent)s)

-- name: keep rare
INSERT INTO rare (job_id, number, label, priority, status, claimant_agent)
SELECT job_id, number, label, priority, %(status)s, %(claimant_agent)s FROM job WHERE job_id = %(job_id)s
ON CONFLICT (job_id) DO UPDATE SET status = excluded.status, claimant_agent = excluded.claimant_agent

-- name: no longer rare
-- Unless it has something else that few have.
DELETE FROM rare
WHERE job_id = %(job_id)s AND key IS NULL AND retry_of IS NULL AND root IS NULL AND parent IS NULL AND NOT set_aside

-- name: end job
-- The whole act in one trip, for a job that is just as the writer left it and that nobody comes after, judged at a time
-- that is the server's. Whoever has waited for the row looks at all of that again. What it tells is left in the journal.
WITH updated AS (
    UPDATE job
    SET status = %(status)s, due_ms = NULL, record = %(record)s, ended_xact = pg_current_xact_id()
    WHERE job_id = %(job_id)s AND record = %(before)s AND NOT awaited
      AND abs(date_part('epoch', clock_timestamp()) - %(now)s) < 1
    RETURNING job_id
)
INSERT INTO journal (job_id, fields, said) SELECT job_id, %(fields)s, %(lines)s FROM updated WHERE {news}

-- name: fail job
-- The same for one that failed or was called off, which is rare.
WITH updated AS (
    UPDATE job
    SET status = %(status)s, due_ms = NULL, record = %(record)s, ended_xact = pg_current_xact_id()
    WHERE job_id = %(job_id)s AND record = %(before)s AND NOT awaited
      AND abs(date_part('epoch', clock_timestamp()) - %(now)s) < 1
    RETURNING job_id, number, label, priority
), kept AS (
    INSERT INTO rare (job_id, number, label, priority, status)
    SELECT job_id, number, label, priority, %(status)s FROM updated
    ON CONFLICT (job_id) DO UPDATE SET status = excluded.status
)
INSERT INTO journal (job_id, fields, said) SELECT job_id, %(fields)s, %(lines)s FROM updated WHERE {news}

-- name: has ended
-- A job ends once, so that whoever finds this entry has found the one that it wrote.
SELECT count(*) FROM journal
WHERE xact >= %(xact)s::xid8 AND job_id = %(job_id)s AND fields = %(fields)s AND said = %(lines)s

-- name: insert event
INSERT INTO event (job_id, seq, event) VALUES (%(job_id)s, %(seq)s, %(event)s)

-- name: outcome
-- What became of a transaction whose commit was not answered: `in progress`, `committed` or `aborted`.
SELECT pg_xact_status(%(xact)s::xid8)

-- name: is ours
-- A crash may have given the same number to another transaction, so the row itself is the proof.
SELECT count(*) FROM journal WHERE xact = %(xact)s::xid8 AND job_id = %(job_id)s AND said = %(lines)s

-- name: ids with prefix
SELECT job_id FROM job WHERE job_id >= %(prefix)s AND job_id < %(behind)s ORDER BY job_id LIMIT %(limit)s

-- name: select
-- OFFSET: from number to number, one job after the other, also where the planner would rather read all of them.
SELECT record, prompt, found.job_id, numbered.number
FROM numbered CROSS JOIN LATERAL (
    SELECT record, prompt, job_id, label, created_at, status FROM job WHERE job.job_id = numbered.job_id OFFSET 0
) AS found
WHERE numbered.number < %(below)s AND (%(label)s::text IS NULL OR label = %(label)s)
  AND (%(since)s::text IS NULL OR created_at >= %(since)s)
  AND status = ANY (ARRAY(SELECT json_array_elements_text(%(statuses)s::json)))
ORDER BY numbered.number DESC LIMIT %(limit)s

-- name: select failed
-- The same of those that failed or were called off, which may be few among a million.
SELECT record, prompt, job_id, rare.number FROM rare JOIN job USING (job_id)
WHERE rare.status IN ('error', 'cancelled') AND rare.number < %(below)s
  AND (%(label)s::text IS NULL OR rare.label = %(label)s) AND (%(since)s::text IS NULL OR created_at >= %(since)s)
  AND rare.status IN (SELECT json_array_elements_text(%(statuses)s::json))
ORDER BY rare.number DESC LIMIT %(limit)s

-- name: select numbered
SELECT record, prompt, job_id, numbered.number FROM numbered JOIN job USING (job_id)
WHERE numbered.number IN (SELECT json_array_elements_text(%(numbers)s::json)::bigint)
  AND (%(label)s::text IS NULL OR label = %(label)s) AND (%(since)s::text IS NULL OR created_at >= %(since)s)
  AND status = ANY (ARRAY(SELECT json_array_elements_text(%(statuses)s::json)))
ORDER BY numbered.number DESC

-- name: open numbers
-- Of the jobs that have not ended, by the indexes of those who claim and sweep; that there are more than a limit is all
-- that is wanted to know of many.
(SELECT number FROM job WHERE blocked = 0 LIMIT %(limit)s)
UNION
(SELECT number FROM rare WHERE exclusive IS NOT NULL AND status = 'pending' LIMIT %(limit)s)
UNION
(SELECT number FROM job WHERE due_ms IS NOT NULL LIMIT %(limit)s)
UNION
(SELECT number FROM dependency LIMIT %(limit)s)
UNION
(SELECT number FROM rare WHERE set_aside LIMIT %(limit)s)
ORDER BY number DESC LIMIT %(limit)s

-- name: ahead
-- Those that a key holds back count too, and are in another index.
SELECT (SELECT count(*) FROM job
        WHERE label = %(label)s AND blocked = 0
          AND (priority > %(priority)s OR (priority = %(priority)s AND number < %(number)s)))
     + (SELECT count(*) FROM rare JOIN job USING (job_id)
        WHERE rare.exclusive IS NOT NULL AND rare.label = %(label)s AND rare.status = 'pending' AND blocked <> 0
          AND (rare.priority > %(priority)s OR (rare.priority = %(priority)s AND rare.number < %(number)s)))

-- name: events
SELECT event FROM told WHERE job_id = %(job_id)s ORDER BY seq

-- name: end
SELECT pg_snapshot_xmin(pg_current_snapshot())::text

-- name: entries
SELECT xact::text, number, job_id, fields, said FROM journal
WHERE (xact, number) > (%(xact)s::xid8, %(number)s) AND xact < %(end)s::xid8
ORDER BY journal.xact, journal.number LIMIT %(limit)s

-- name: listen
-- Before LISTEN. Whoever wrote before lock 1 was held did not see that somebody listens; when lock 2 is had, they are
-- done, and a look shows what they did.
SELECT pg_advisory_lock_shared(7168365, 1), pg_advisory_lock(7168365, 2), pg_advisory_unlock(7168365, 2)

-- name: pauses
SELECT agent, label, until, reason, since, probe FROM pause ORDER BY agent, label

-- name: pause
WITH news AS (SELECT pg_notify('mam_news', '')), moved AS (UPDATE store SET moves = moves + 1)
INSERT INTO pause (agent, label, until, reason, since, probe)
SELECT %(agent)s, %(label)s, %(until)s, %(reason)s, %(made_at)s, %(probe)s FROM news
ON CONFLICT (agent, label)
DO UPDATE SET until = excluded.until, reason = excluded.reason, since = excluded.since,
    probe = excluded.probe

-- name: resume
DELETE FROM pause WHERE agent = %(agent)s AND label = %(label)s RETURNING pg_notify('mam_news', '')

-- name: hold session
-- Before its generation is looked at: by its name, since a row that is not there cannot be held. Its claims and its
-- announcements wait for each other, and no transaction gets its number by that.
SELECT pg_advisory_xact_lock(hashtextextended(%(agent_id)s::text, 7168365))

-- name: generations
SELECT agent_id, generation_id, superseded FROM session_generation

-- name: generation
SELECT generation_id, superseded FROM session_generation WHERE agent_id = %(agent_id)s

-- name: announce
INSERT INTO session_generation (agent_id, generation_id, superseded)
VALUES (%(agent_id)s, %(generation_id)s, %(superseded)s)
ON CONFLICT (agent_id) DO UPDATE SET generation_id = excluded.generation_id, superseded = excluded.superseded

-- name: held by
SELECT job_id FROM rare WHERE claimant_agent = %(agent_id)s AND status = 'running' ORDER BY number

-- name: children
SELECT job_id FROM rare WHERE parent = %(parent)s ORDER BY number

-- name: relay
SELECT sent FROM relay WHERE broker = %(broker)s

-- name: keep relay
INSERT INTO relay (broker, sent) VALUES (%(broker)s, %(sent)s) ON CONFLICT (broker) DO UPDATE SET sent = excluded.sent

-- name: relay lock is free
-- Held until the end of the statement: those who only ask share it, and so do not see each other.
SELECT pg_try_advisory_xact_lock_shared(hashtextextended(%(name)s::text, %(space)s))

-- name: keep secret
INSERT INTO secret (job_id, name, secret) VALUES (%(job_id)s, %(name)s, %(secret)s)
ON CONFLICT (job_id, name) DO UPDATE SET secret = excluded.secret

-- name: secrets
SELECT name, secret FROM secret WHERE job_id = %(job_id)s

-- What stands between a job and its claim (mam.stores.sql.gate)

-- name: holder
SELECT job_id FROM rare WHERE exclusive = %(key)s AND status = 'running' LIMIT 1

-- name: block key
-- Only the heads are free, one for each agent of a label, so this touches few rows however many wait for the key.
UPDATE job SET blocked = 1
WHERE blocked = 0 AND job_id IN (SELECT job_id FROM rare WHERE exclusive = %(key)s AND status = 'pending')
  AND EXISTS (SELECT FROM rare AS holder WHERE holder.exclusive = %(key)s AND holder.status = 'running')

-- name: free heads
WITH RECURSIVE head (job_id, label, agent) AS (
    (SELECT job_id, label, agent FROM rare
     WHERE exclusive = %(key)s AND status = 'pending' AND NOT set_aside
       AND NOT EXISTS (SELECT FROM rare AS holder WHERE holder.exclusive = %(key)s AND holder.status = 'running')
     ORDER BY label, agent, priority DESC, number LIMIT 1)
    UNION ALL
    SELECT next.job_id, next.label, next.agent
    FROM head CROSS JOIN LATERAL (
        SELECT job_id, label, agent FROM rare
        WHERE exclusive = %(key)s AND status = 'pending' AND NOT set_aside
          AND (rare.label, rare.agent) > (head.label, head.agent)
        ORDER BY label, agent, priority DESC, number LIMIT 1
    ) AS next
)
UPDATE job SET blocked = 0 WHERE blocked <> 0 AND job_id IN (SELECT job_id FROM head)

-- name: newest
SELECT job_id FROM rare
WHERE root = coalesce((SELECT root FROM job WHERE job_id = %(job_id)s), %(job_id)s)
ORDER BY number DESC LIMIT 1

-- name: needs
-- Marked once more: whoever takes in the jobs of another registry has not held the one that it comes after.
WITH found AS MATERIALIZED (
    SELECT coalesce((SELECT root FROM job WHERE job_id = %(needs)s), %(needs)s) AS root
), marked AS (
    UPDATE job SET awaited = true FROM found WHERE job.job_id = found.root AND NOT awaited
)
INSERT INTO dependency (needs, number, job_id) SELECT root, %(number)s, %(job_id)s FROM found
ON CONFLICT DO NOTHING

-- name: needs no more
DELETE FROM dependency WHERE job_id = %(job_id)s

-- name: ended
-- Nobody is looked at here: who ends a job does not pay for those that come after it.
INSERT INTO unsettled (root, ended, upto)
SELECT found.root, %(job_id)s::text, 0 FROM (SELECT coalesce(%(root)s, %(job_id)s)::text AS root) AS found
WHERE EXISTS (SELECT FROM dependency WHERE needs = found.root)
ON CONFLICT (root) DO UPDATE SET ended = excluded.ended, upto = 0

-- name: unsettled
SELECT root, ended, upto FROM unsettled ORDER BY root LIMIT 1 FOR UPDATE SKIP LOCKED

-- name: dependents
-- Oldest first, as claims would take them.
SELECT number, job_id FROM dependency WHERE needs = %(root)s AND number > %(upto)s ORDER BY number LIMIT %(limit)s

-- name: settled upto
UPDATE unsettled SET upto = %(upto)s WHERE root = %(root)s AND ended = %(ended)s

-- name: settled
DELETE FROM unsettled WHERE root = %(root)s AND ended = %(ended)s

-- name: begin filling
-- A version below zero: nobody opens it but whoever fills it. Answers nothing if there are jobs that it did not put there.
UPDATE store SET version = -abs(version)
WHERE version < 0 OR NOT (EXISTS (SELECT FROM job) OR EXISTS (SELECT FROM archive))
RETURNING version

-- name: end filling
UPDATE store SET version = abs(version)

-- name: archive jobs
-- Whole in one statement. The newest stays, as on every store; one that somebody else holds is left for another time.
WITH held AS MATERIALIZED (
    SELECT job_id, number, root, record, prompt FROM job
    WHERE job_id IN (SELECT json_array_elements_text(%(job_ids)s::json))
      AND status IN ('completed', 'error', 'cancelled') AND number < (SELECT max(number) FROM numbered)
    FOR UPDATE SKIP LOCKED
), put AS (
    INSERT INTO archive (job_id, number, key, retry_of, root, record, prompt, events)
    SELECT job_id, held.number, key, retry_of, held.root, record, prompt,
           '[' || coalesce((SELECT string_agg(event, ',' ORDER BY seq) FROM told
                            WHERE told.job_id = held.job_id), '') || ']'
    FROM held LEFT JOIN rare USING (job_id)
    ON CONFLICT (job_id) DO UPDATE SET record = excluded.record, events = excluded.events
), silenced AS (
    DELETE FROM event USING held WHERE event.job_id = held.job_id
), unmarked AS (
    DELETE FROM rare USING held WHERE rare.job_id = held.job_id
), unplaced AS (
    DELETE FROM numbered USING held WHERE numbered.number = held.number
), removed AS (
    DELETE FROM job USING held WHERE job.job_id = held.job_id
)
INSERT INTO journal (job_id, fields, said)
SELECT job_id, NULL, %(lines)s::json ->> job_id FROM held

-- name: forget job
WITH unmarked AS (
    DELETE FROM rare WHERE job_id = %(job_id)s
), unplaced AS (
    DELETE FROM numbered USING job WHERE numbered.number = job.number AND job.job_id = %(job_id)s
)
DELETE FROM job WHERE job_id = %(job_id)s

-- name: forget events
DELETE FROM event WHERE job_id = %(job_id)s

-- name: only archived
SELECT job_id FROM archive
WHERE job_id IN (SELECT json_array_elements_text(%(job_ids)s::json))
  AND NOT EXISTS (SELECT FROM job WHERE job.job_id = archive.job_id)

-- name: archived
SELECT record, prompt, events FROM archive WHERE job_id = %(job_id)s

-- name: archived with prefix
SELECT job_id FROM archive WHERE job_id >= %(prefix)s AND job_id < %(behind)s ORDER BY job_id LIMIT %(limit)s

-- name: archive contents
SELECT number, record, prompt, events FROM archive WHERE number > %(place)s ORDER BY number LIMIT %(limit)s

-- name: archive newest first
SELECT number, record, prompt, events FROM archive WHERE number < %(place)s ORDER BY number DESC LIMIT %(limit)s

-- name: newest archived
-- Of the chain that an archived job belongs to, whether the others are archived too or not.
WITH chain (root) AS (SELECT coalesce(root, job_id) FROM archive WHERE job_id = %(job_id)s)
SELECT record, prompt FROM (
    SELECT rare.number, record, prompt FROM rare JOIN job USING (job_id) WHERE rare.root IN (SELECT root FROM chain)
    UNION ALL
    SELECT number, record, prompt FROM archive
    WHERE root IN (SELECT root FROM chain) OR job_id IN (SELECT root FROM chain)
) AS found
ORDER BY number DESC LIMIT 1

-- name: put into archive
INSERT INTO archive (job_id, number, key, retry_of, root, record, prompt, events)
VALUES (%(job_id)s, %(number)s, %(key)s, %(retry_of)s, %(root)s, %(record)s, %(prompt)s, %(events)s)
ON CONFLICT (job_id) DO UPDATE
SET number = excluded.number, key = excluded.key, retry_of = excluded.retry_of, root = excluded.root,
    record = excluded.record, prompt = excluded.prompt, events = excluded.events

-- name: number behind
-- Numbers go on behind the highest that was taken in.
SELECT setval('job_number', greatest(%(number)s, last_value, 1)) FROM job_number

-- name: root
SELECT coalesce((SELECT root FROM job WHERE job_id = %(job_id)s), (SELECT root FROM archive WHERE job_id = %(job_id)s),
                %(job_id)s)

-- name: set aside
-- A row that nobody can read; there is nothing else to find it by.
WITH found AS (
    UPDATE job SET blocked = 2 WHERE record = %(record)s AND blocked < 2 RETURNING job_id, number, label, priority, status
)
INSERT INTO rare (job_id, number, label, priority, status, set_aside)
SELECT job_id, number, label, priority, status, true FROM found
ON CONFLICT (job_id) DO UPDATE SET set_aside = true
RETURNING job_id

-- name: those set aside
SELECT record, prompt, job_id, rare.number, job.status, job.label, job.exclusive FROM rare JOIN job USING (job_id)
WHERE set_aside ORDER BY rare.number

-- name: take back
WITH found AS (UPDATE rare SET set_aside = false WHERE job_id = %(job_id)s)
UPDATE job SET blocked = CASE WHEN status = 'pending' THEN 0 ELSE -1 END WHERE job_id = %(job_id)s AND blocked = 2
