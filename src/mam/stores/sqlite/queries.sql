-- The queries of the SQLite store. `{columns}` are the columns of a job (mam.stores.sql.rows).
-- INDEXED BY: a planner that has statistics may otherwise walk through the whole table.

-- name: epoch
SELECT epoch FROM store

-- name: job to change
SELECT {columns} FROM job JOIN prompt USING (number) WHERE job_id = :job_id

-- name: jobs to change
SELECT {columns} FROM job JOIN prompt USING (number)
WHERE job_id IN (SELECT value FROM json_each(:job_ids)) ORDER BY number

-- name: next number
SELECT coalesce(max(number), 0) + 1 FROM job

-- name: claim conditions
SELECT EXISTS (SELECT 1 FROM job INDEXED BY job_due
               WHERE due_boot = :boot_id AND due_ms <= :boot_ms AND blocked < 2 AND :boot_id <> '')
       OR EXISTS (SELECT 1 FROM job INDEXED BY job_due WHERE due_boot = '' AND due_ms <= :wall_ms AND blocked < 2),
       EXISTS (SELECT 1 FROM unsettled),
       EXISTS (SELECT 1 FROM pause)

-- name: first pending
SELECT {columns} FROM job INDEXED BY job_pending JOIN prompt USING (number)
WHERE label = :label AND status = 'pending' AND blocked = 0 AND host IN ('', :host)
  AND agent NOT IN (SELECT value FROM json_each(:skipped))
  AND (exclusive IS NULL OR NOT EXISTS (SELECT 1 FROM job AS other WHERE other.exclusive = job.exclusive AND other.status = 'running'))
ORDER BY priority DESC, number LIMIT 1

-- name: this pending
SELECT {columns} FROM job JOIN prompt USING (number)
WHERE job_id = :job_id AND label = :label AND status = 'pending' AND blocked < 2
  AND host IN ('', :host) AND agent NOT IN (SELECT value FROM json_each(:skipped))
  AND (exclusive IS NULL OR NOT EXISTS (SELECT 1 FROM job AS other WHERE other.exclusive = job.exclusive AND other.status = 'running'))

-- name: due
-- Jobs whose time has come, longest due first, each by the clock that it goes by.
SELECT {columns} FROM (
    SELECT * FROM (SELECT number AS at, :boot_ms - due_ms AS late FROM job INDEXED BY job_due
                   WHERE due_boot = :boot_id AND due_ms <= :boot_ms AND blocked < 2 AND :boot_id <> ''
                   ORDER BY due_ms LIMIT :limit)
    UNION ALL
    SELECT * FROM (SELECT number AS at, :wall_ms - due_ms AS late FROM job INDEXED BY job_due
                   WHERE due_boot = '' AND due_ms <= :wall_ms AND blocked < 2 ORDER BY due_ms LIMIT :limit)
) JOIN job ON job.number = at JOIN prompt USING (number)
ORDER BY late DESC LIMIT :limit

-- name: next due
SELECT (SELECT min(due_ms) FROM job INDEXED BY job_due
        WHERE due_boot = :boot_id AND due_ms IS NOT NULL AND blocked < 2 AND :boot_id <> '') - :boot_ms,
       (SELECT min(due_ms) FROM job INDEXED BY job_due WHERE due_boot = '' AND due_ms IS NOT NULL AND blocked < 2) - :wall_ms,
       EXISTS (SELECT 1 FROM unsettled), EXISTS (SELECT 1 FROM pause)

-- name: set boot
-- Leases of an earlier boot go by the wall clock.
UPDATE store SET boot_id = :boot_id WHERE boot_id <> :boot_id RETURNING 1

-- name: jobs of other boots
SELECT {columns} FROM job JOIN prompt USING (number) WHERE due_ms IS NOT NULL AND due_boot NOT IN ('', :boot_id)

-- name: use wall clock
UPDATE job SET due_boot = '', due_ms = :due_ms WHERE number = :number

-- name: boot
SELECT boot_id FROM store

-- name: mirrored upto
SELECT mirrored_upto FROM store

-- name: save mirrored
UPDATE store SET mirrored_upto = :number

-- name: jobs since
SELECT DISTINCT job_id FROM journal WHERE number > :number

-- name: entries before
SELECT number, job_id, coalesce(lines ->> '$[0].timestamp', '') FROM journal WHERE number < :below ORDER BY number DESC LIMIT :limit

-- name: versions
SELECT job_id, version FROM job WHERE job_id IN (SELECT value FROM json_each(:job_ids))

-- name: newest ids
SELECT job_id FROM job ORDER BY number DESC LIMIT :limit

-- name: insert prompt
INSERT INTO prompt (number, prompt) VALUES (:number, :prompt)

-- name: update prompt
UPDATE prompt SET prompt = :prompt WHERE number = :number

-- name: insert entry
INSERT INTO journal (job, job_id, fields, lines) VALUES (:job, :job_id, :fields, :lines)

-- name: children
SELECT job_id FROM job INDEXED BY job_parent WHERE parent_id = :parent ORDER BY number

-- name: select
SELECT {columns} FROM job JOIN prompt USING (number)
WHERE number < :below AND (:since IS NULL OR created_at >= :since) AND status IN (SELECT value FROM json_each(:statuses))
ORDER BY number DESC LIMIT :limit

-- name: select label
SELECT {columns} FROM job INDEXED BY job_label JOIN prompt USING (number)
WHERE label = :label AND number < :below AND (:since IS NULL OR created_at >= :since)
  AND status IN (SELECT value FROM json_each(:statuses))
ORDER BY number DESC LIMIT :limit

-- name: select failed
SELECT {columns} FROM job INDEXED BY job_failed JOIN prompt USING (number)
WHERE (status = 'error' OR status = 'cancelled') AND number < :below AND (:label IS NULL OR label = :label)
  AND (:since IS NULL OR created_at >= :since) AND status IN (SELECT value FROM json_each(:statuses))
ORDER BY number DESC LIMIT :limit

-- name: select open
SELECT {columns} FROM job INDEXED BY job_open JOIN prompt USING (number)
WHERE (status = 'pending' OR status = 'waiting' OR status = 'running') AND number < :below AND (:label IS NULL OR label = :label)
  AND (:since IS NULL OR created_at >= :since) AND status IN (SELECT value FROM json_each(:statuses))
ORDER BY number DESC LIMIT :limit

-- name: select asking
SELECT {columns} FROM job INDEXED BY job_asking JOIN prompt USING (number)
WHERE asking > 0 AND number < :below AND (:label IS NULL OR label = :label)
  AND (:since IS NULL OR created_at >= :since) AND status IN (SELECT value FROM json_each(:statuses))
ORDER BY number DESC LIMIT :limit

-- name: queue
SELECT job_id, label, agent, priority, number FROM job INDEXED BY job_open
WHERE (status = 'pending' OR status = 'waiting' OR status = 'running') AND status = 'pending'
  AND (:label IS NULL OR label = :label) AND (:since IS NULL OR created_at >= :since)
ORDER BY number

-- name: counts
SELECT status, count(*) FROM job INDEXED BY job_ended
WHERE status = 'completed' OR status = 'error' OR status = 'cancelled' GROUP BY status
UNION ALL
SELECT status, count(*) FROM job INDEXED BY job_open
WHERE status = 'pending' OR status = 'waiting' OR status = 'running' GROUP BY status

-- name: ended before
SELECT status, count(*) FROM job INDEXED BY job_ended
WHERE (status = 'completed' OR status = 'error' OR status = 'cancelled') AND coalesce(ended_at, updated_at) < :before
GROUP BY status

-- name: count ahead
SELECT count(*) FROM (
    SELECT priority, number FROM job INDEXED BY job_pending WHERE label = :label AND status = 'pending' AND blocked = 0
    UNION ALL
    SELECT priority, number FROM job INDEXED BY job_exclusive
    WHERE exclusive IS NOT NULL AND status = 'pending' AND blocked = 1 AND label = :label
) WHERE priority > :priority OR (priority = :priority AND number < :number)

-- name: unblock heads
-- The first of each agent and host of a label; one step for each, however many wait.
WITH RECURSIVE head (number, label, agent, host) AS (
    SELECT * FROM (SELECT number, label, agent, host FROM job
                   WHERE exclusive = :key AND status = 'pending' AND blocked < 2
                   ORDER BY label, agent, host, priority DESC, number LIMIT 1)
    UNION ALL
    SELECT job.number, job.label, job.agent, job.host
    FROM head JOIN job ON job.number = (SELECT number FROM job
                                        WHERE exclusive = :key AND status = 'pending' AND blocked < 2
                                          AND (label, agent, host) > (head.label, head.agent, head.host)
                                        ORDER BY label, agent, host, priority DESC, number LIMIT 1)
)
UPDATE job SET blocked = 0 WHERE number IN (SELECT number FROM head)

-- name: mark awaited
-- All open jobs of the chain of retries that a job belongs to.
UPDATE job SET awaited = 1
WHERE awaited = 0 AND (job_id = :job_id OR job_id = (SELECT root FROM job WHERE job_id = :job_id)
                       OR root = coalesce((SELECT root FROM job WHERE job_id = :job_id), :job_id))

-- name: mark all unsettled
INSERT OR IGNORE INTO unsettled (root, ended, upto) SELECT DISTINCT needs, '', 0 FROM dependency

-- name: jobs held by session
SELECT job_id FROM job INDEXED BY job_claimant
WHERE claimant_agent = :agent_id AND status = 'running' AND blocked < 2 ORDER BY number

-- name: archivable
-- The newest job stays: its number is the one to count on from.
SELECT job_id FROM job
WHERE job_id IN (SELECT value FROM json_each(:job_ids))
  AND (status = 'completed' OR status = 'error' OR status = 'cancelled')
  AND number < (SELECT max(number) FROM job)

-- name: insert archived
INSERT OR REPLACE INTO archive (job_id, number, key, retry_of, continues, root, record, events)
VALUES (:job_id, :number, :key, :retry_of, :continues, :root, :record, :events)

-- name: which archived
SELECT job_id FROM archive WHERE job_id IN (SELECT value FROM json_each(:job_ids))

-- name: advance numbers
-- Numbers continue after the highest one.
SELECT :number

-- name: unreadable jobs
SELECT {columns} FROM job INDEXED BY job_set_aside JOIN prompt USING (number) WHERE blocked = 2 ORDER BY number

-- name: delete jobs
DELETE FROM job WHERE job_id IN (SELECT value FROM json_each(:job_ids))

-- name: entries of archived
-- Except the last entry of the job, which records its removal.
SELECT number, job, fields, lines FROM journal
WHERE job IN (SELECT number FROM archive WHERE job_id IN (SELECT value FROM json_each(:job_ids))) AND number < :below AND fields IS NOT NULL
ORDER BY number

-- name: delete entries
DELETE FROM journal WHERE number IN (SELECT value FROM json_each(:numbers))
