-- The queries of SQLite alone.
-- INDEXED BY: a planner that has statistics may otherwise walk through the whole table.

-- name: epoch
SELECT epoch FROM store

-- name: next number
SELECT coalesce(max(number), 0) + 1 FROM job

-- name: claim conditions
SELECT EXISTS (SELECT 1 FROM job INDEXED BY job_due
               WHERE due_boot = :boot_id AND due_ms <= :boot_ms AND blocked < 2 AND :boot_id <> '')
       OR EXISTS (SELECT 1 FROM job INDEXED BY job_due WHERE due_boot = '' AND due_ms <= :wall_ms AND blocked < 2),
       EXISTS (SELECT 1 FROM unsettled),
       EXISTS (SELECT 1 FROM pause)

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

-- name: advance numbers
-- Numbers continue after the highest one.
SELECT :number

-- name: delete entries
DELETE FROM journal WHERE number IN (SELECT value FROM json_each(:numbers))
