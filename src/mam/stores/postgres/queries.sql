-- name: journal id
SELECT journal_id FROM store

-- name: version
SELECT version FROM store

-- name: now
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint

-- name: job
SELECT record, prompt FROM job WHERE job_id = %(job_id)s

-- name: job to change
SELECT record, prompt FROM job WHERE job_id = %(job_id)s FOR UPDATE

-- name: job with key
SELECT record, prompt FROM job WHERE key = %(key)s

-- name: job that retries
SELECT record, prompt FROM job WHERE retry_of = %(retry_of)s

-- name: next number
SELECT nextval('job_number')

-- name: first pending
-- SKIP LOCKED: what another claimer has in its hands is as good as gone.
SELECT record, prompt FROM job
WHERE label = %(label)s AND status = 'pending'
ORDER BY priority DESC, number LIMIT 1
FOR UPDATE SKIP LOCKED

-- name: due by boot clock
SELECT %(boot_ms)s::bigint - boot_ms, record, prompt FROM job
WHERE boot_id = %(boot_id)s AND boot_ms <= %(boot_ms)s
ORDER BY boot_ms LIMIT %(limit)s
FOR UPDATE SKIP LOCKED

-- name: due by wall clock
SELECT %(wall_ms)s::bigint - due_ms, record, prompt FROM job
WHERE due_ms <= %(wall_ms)s AND boot_id IS DISTINCT FROM %(boot_id)s
ORDER BY due_ms LIMIT %(limit)s
FOR UPDATE SKIP LOCKED

-- name: next due by boot clock
SELECT min(boot_ms) - %(boot_ms)s::bigint FROM job WHERE boot_id = %(boot_id)s

-- name: next due by wall clock
SELECT min(due_ms) - %(wall_ms)s::bigint FROM job
WHERE due_ms IS NOT NULL AND boot_id IS DISTINCT FROM %(boot_id)s

-- name: insert job
INSERT INTO job
    (job_id, number, status, label, priority, created_at, key, retry_of, due_ms, boot_id, boot_ms, prompt, record)
VALUES
    (%(job_id)s, %(number)s, %(status)s, %(label)s, %(priority)s, %(created_at)s, %(key)s, %(retry_of)s, %(due_ms)s,
     %(boot_id)s, %(boot_ms)s, '', %(record)s)

-- name: insert prompt
UPDATE job SET prompt = %(prompt)s WHERE job_id = %(job_id)s

-- name: update job
UPDATE job
SET status = %(status)s, due_ms = %(due_ms)s, boot_id = %(boot_id)s, boot_ms = %(boot_ms)s, record = %(record)s
WHERE job_id = %(job_id)s

-- name: insert entry
INSERT INTO journal (job_id, fields, lines) VALUES (%(job_id)s, %(fields)s, %(lines)s) RETURNING xact::text

-- name: insert event
INSERT INTO event (job_id, seq, event) VALUES (%(job_id)s, %(seq)s, %(event)s)

-- name: notify
-- Only when a job may be claimed or has ended: a notification makes commits wait for each other.
SELECT pg_notify(%(channel)s, '')

-- name: outcome
-- What became of a transaction whose commit was not answered: `in progress`, `committed` or `aborted`.
SELECT pg_xact_status(%(xact)s::xid8)

-- name: is ours
-- A crash may have given the same number to another transaction, so the row itself is the proof.
SELECT count(*) FROM journal WHERE xact = %(xact)s::xid8 AND job_id = %(job_id)s AND lines = %(lines)s

-- name: ids with prefix
SELECT job_id FROM job WHERE job_id >= %(prefix)s AND job_id < %(behind)s ORDER BY job_id LIMIT %(limit)s

-- name: select
SELECT record, prompt FROM job
WHERE number < %(below)s AND (%(label)s::text IS NULL OR label = %(label)s)
  AND (%(since)s::text IS NULL OR created_at >= %(since)s)
  AND status IN (SELECT json_array_elements_text(%(statuses)s::json))
ORDER BY number DESC LIMIT %(limit)s

-- name: ahead
SELECT count(*) FROM job
WHERE label = %(label)s AND status = 'pending'
  AND (priority > %(priority)s OR (priority = %(priority)s AND number < %(number)s))

-- name: events
SELECT event FROM event WHERE job_id = %(job_id)s ORDER BY seq

-- name: end
SELECT pg_snapshot_xmin(pg_current_snapshot())::text

-- name: entries
SELECT xact::text, number, job_id, fields, lines FROM journal
WHERE (xact, number) > (%(xact)s::xid8, %(number)s) AND xact < %(end)s::xid8
ORDER BY journal.xact, journal.number LIMIT %(limit)s
