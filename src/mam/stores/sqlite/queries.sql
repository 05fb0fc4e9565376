-- name: begin
-- Writers queue here, so that what is read next is still true when it is written.
BEGIN IMMEDIATE

-- name: commit
COMMIT

-- name: roll back
ROLLBACK

-- name: journal id
SELECT journal_id FROM store

-- name: job
SELECT record, prompt FROM job JOIN prompt USING (job_id) WHERE job_id = :job_id

-- name: job to change
SELECT record, prompt FROM job JOIN prompt USING (job_id) WHERE job_id = :job_id

-- name: job with key
SELECT record, prompt FROM job JOIN prompt USING (job_id) WHERE key = :key

-- name: job that retries
SELECT record, prompt FROM job JOIN prompt USING (job_id) WHERE retry_of = :retry_of

-- name: next number
SELECT coalesce(max(number), 0) + 1 FROM job

-- name: first pending
-- INDEXED BY: a planner that has seen statistics may walk the whole table instead.
SELECT record, prompt FROM job INDEXED BY job_claim JOIN prompt USING (job_id)
WHERE label = :label AND status = 'pending'
ORDER BY priority DESC, number LIMIT 1

-- name: due by boot clock
SELECT :boot_ms - boot_ms, record, prompt FROM job INDEXED BY job_due_by_boot JOIN prompt USING (job_id)
WHERE boot_id = :boot_id AND boot_ms <= :boot_ms
ORDER BY boot_ms LIMIT :limit

-- name: due by wall clock
SELECT :wall_ms - due_ms, record, prompt FROM job INDEXED BY job_due_by_wall JOIN prompt USING (job_id)
WHERE due_ms <= :wall_ms AND boot_id IS NOT :boot_id
ORDER BY due_ms LIMIT :limit

-- name: next due by boot clock
SELECT min(boot_ms) - :boot_ms FROM job INDEXED BY job_due_by_boot WHERE boot_id = :boot_id

-- name: next due by wall clock
SELECT min(due_ms) - :wall_ms FROM job INDEXED BY job_due_by_wall
WHERE due_ms IS NOT NULL AND boot_id IS NOT :boot_id

-- name: insert job
INSERT INTO job (job_id, number, status, label, priority, created_at, key, retry_of, due_ms, boot_id, boot_ms, record)
VALUES (:job_id, :number, :status, :label, :priority, :created_at, :key, :retry_of, :due_ms, :boot_id, :boot_ms, :record)

-- name: insert prompt
INSERT INTO prompt (job_id, prompt) VALUES (:job_id, :prompt)

-- name: update job
UPDATE job SET status = :status, due_ms = :due_ms, boot_id = :boot_id, boot_ms = :boot_ms, record = :record
WHERE job_id = :job_id

-- name: insert entry
INSERT INTO journal (job_id, fields, lines) VALUES (:job_id, :fields, :lines)

-- name: insert event
INSERT INTO event (job_id, seq, event) VALUES (:job_id, :seq, :event)

-- name: ids with prefix
SELECT job_id FROM job WHERE job_id >= :prefix AND job_id < :behind ORDER BY job_id LIMIT :limit

-- name: select
-- Page by page, so that no reader holds the write-ahead log back.
SELECT record, prompt FROM job JOIN prompt USING (job_id)
WHERE number < :below AND (:label IS NULL OR label = :label) AND (:since IS NULL OR created_at >= :since)
  AND status IN (SELECT value FROM json_each(:statuses))
ORDER BY number DESC LIMIT :limit

-- name: ahead
SELECT count(*) FROM job INDEXED BY job_claim
WHERE label = :label AND status = 'pending'
  AND (priority > :priority OR (priority = :priority AND number < :number))

-- name: events
SELECT event FROM event WHERE job_id = :job_id ORDER BY seq

-- name: last entry
SELECT coalesce(max(number), 0) FROM journal

-- name: entries
SELECT number, job_id, fields, lines FROM journal WHERE number > :after AND number <= :upto ORDER BY number LIMIT :limit
