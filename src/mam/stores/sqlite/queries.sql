-- The queries of the SQLite store. `{columns}` are the columns of a job (mam.stores.sql.rows).
-- INDEXED BY: a planner that has statistics may otherwise walk through the whole table.

-- name: epoch
SELECT epoch FROM store

-- name: job
SELECT {columns} FROM job JOIN prompt USING (number) WHERE job_id = :job_id

-- name: job to change
SELECT {columns} FROM job JOIN prompt USING (number) WHERE job_id = :job_id

-- name: jobs to change
SELECT {columns} FROM job JOIN prompt USING (number)
WHERE job_id IN (SELECT value FROM json_each(:job_ids)) ORDER BY number

-- name: job by key
SELECT {columns} FROM job JOIN prompt USING (number) WHERE key = :value

-- name: job by retry_of
SELECT {columns} FROM job JOIN prompt USING (number) WHERE retry_of = :value

-- name: is taken
SELECT 1 FROM job WHERE job_id = :job_id UNION ALL SELECT 1 FROM archive WHERE job_id = :job_id

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
WHERE label = :label AND status = 'pending' AND blocked = 0 AND agent NOT IN (SELECT value FROM json_each(:skipped))
  AND (exclusive IS NULL OR NOT EXISTS (SELECT 1 FROM job AS other WHERE other.exclusive = job.exclusive AND other.status = 'running'))
ORDER BY priority DESC, number LIMIT 1

-- name: this pending
SELECT {columns} FROM job JOIN prompt USING (number)
WHERE job_id = :job_id AND label = :label AND status = 'pending' AND blocked < 2
  AND agent NOT IN (SELECT value FROM json_each(:skipped))
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
       EXISTS (SELECT 1 FROM unsettled)

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

-- name: insert job
INSERT INTO job ({names}) VALUES ({values})

-- name: insert prompt
INSERT INTO prompt (number, prompt) VALUES (:number, :prompt)

-- name: update job
UPDATE job
SET version = version + 1, status = :status, blocked = :blocked,
    updated_at = :updated_at, claimed_at = :claimed_at, heard_at = :heard_at, ended_at = :ended_at, attempt = :attempt,
    claim_id = :claim_id, owner = :owner, supervised = :supervised, claimant_agent = :claimant_agent,
    claimant_generation = :claimant_generation, lease_expires_at = :lease_expires_at, lease_seconds = :lease_seconds,
    lease_boot_id = :lease_boot_id, lease_boot_ms = :lease_boot_ms, waiting_for = :waiting_for, due_at = :due_at,
    due_boot = :due_boot, due_ms = :due_ms, ended_attempt = :ended_attempt, losses = :losses, max_losses = :max_losses,
    retries = :retries, max_retries = :max_retries, timeout_sec = :timeout_sec, idle_timeout_sec = :idle_timeout_sec,
    last_seq = :last_seq, reason = :reason, result = :result, checked = :checked,
    expected_artifacts = :expected_artifacts, said = :said, checks = :checks, run = :run, workdir = :workdir,
    origin_host = :origin_host, extra = :extra
WHERE number = :number AND version = :version

-- name: update queue order
-- Seldom, and so by itself: SQLite writes every index anew whose columns a statement names.
UPDATE job SET label = :label, agent = :agent, priority = :priority WHERE number = :number

-- name: update prompt
UPDATE prompt SET prompt = :prompt WHERE number = :number

-- name: insert entry
INSERT INTO journal (job, job_id, fields, lines) VALUES (:job, :job_id, :fields, :lines)

-- name: lines of job
SELECT lines FROM journal
WHERE job = (SELECT number FROM job WHERE job_id = :job_id) AND job_id = :job_id ORDER BY number

-- name: last entry
SELECT coalesce(max(number), 0) FROM journal

-- name: entries
SELECT number, job_id, fields, lines FROM journal WHERE number > :after AND number <= :upto ORDER BY number LIMIT :limit

-- name: position
SELECT position FROM consumer WHERE name = :name

-- name: save position
INSERT OR REPLACE INTO consumer (name, position) VALUES (:name, :position)

-- name: ids with prefix
SELECT job_id FROM job WHERE job_id >= :prefix AND job_id < :behind ORDER BY job_id LIMIT :limit

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

-- name: root
-- Of the chain of retries that a job belongs to; the job itself if it retries none.
SELECT coalesce((SELECT root FROM job WHERE job_id = :job_id), (SELECT root FROM archive WHERE job_id = :job_id), :job_id)

-- name: newest
SELECT job_id FROM (
    SELECT job_id, number FROM job WHERE root = :root
    UNION ALL SELECT job_id, number FROM job WHERE job_id = :root
    UNION ALL SELECT job_id, number FROM archive WHERE root = :root
    UNION ALL SELECT job_id, number FROM archive WHERE job_id = :root
) ORDER BY number DESC LIMIT 1

-- name: holder
SELECT job_id FROM job WHERE exclusive = :key AND status = 'running'

-- name: block key
UPDATE job SET blocked = 1 WHERE exclusive = :key AND status = 'pending' AND blocked = 0

-- name: unblock heads
-- The first of each agent of a label; one step for each, however many wait.
WITH RECURSIVE head (number, label, agent) AS (
    SELECT * FROM (SELECT number, label, agent FROM job
                   WHERE exclusive = :key AND status = 'pending' AND blocked < 2
                   ORDER BY label, agent, priority DESC, number LIMIT 1)
    UNION ALL
    SELECT job.number, job.label, job.agent
    FROM head JOIN job ON job.number = (SELECT number FROM job
                                        WHERE exclusive = :key AND status = 'pending' AND blocked < 2
                                          AND (label, agent) > (head.label, head.agent)
                                        ORDER BY label, agent, priority DESC, number LIMIT 1)
)
UPDATE job SET blocked = 0 WHERE number IN (SELECT number FROM head)

-- name: insert dependency
INSERT OR IGNORE INTO dependency (needs, number, job_id)
VALUES (coalesce((SELECT root FROM job WHERE job_id = :needs), (SELECT root FROM archive WHERE job_id = :needs), :needs),
        :number, :job_id)

-- name: mark awaited
-- All open jobs of the chain of retries that a job belongs to.
UPDATE job SET awaited = 1
WHERE awaited = 0 AND (job_id = :job_id OR job_id = (SELECT root FROM job WHERE job_id = :job_id)
                       OR root = coalesce((SELECT root FROM job WHERE job_id = :job_id), :job_id))

-- name: is awaited
SELECT 1 FROM dependency WHERE needs = :root LIMIT 1

-- name: delete dependencies
DELETE FROM dependency WHERE job_id = :job_id

-- name: mark unsettled
INSERT INTO unsettled (root, ended, upto)
SELECT needs, :job_id, 0 FROM dependency WHERE needs = coalesce(:root, :job_id) LIMIT 1
ON CONFLICT (root) DO UPDATE SET ended = excluded.ended, upto = 0

-- name: mark all unsettled
INSERT OR IGNORE INTO unsettled (root, ended, upto) SELECT DISTINCT needs, '', 0 FROM dependency

-- name: next unsettled
SELECT root, ended, upto FROM unsettled ORDER BY root LIMIT 1

-- name: dependents
SELECT number, job_id FROM dependency WHERE needs = :root AND number > :upto ORDER BY number LIMIT :limit

-- name: save settled upto
UPDATE unsettled SET upto = :upto WHERE root = :root AND ended = :ended

-- name: delete unsettled
DELETE FROM unsettled WHERE root = :root AND ended = :ended

-- name: pauses
SELECT agent, label, until, reason, made_at, probe FROM pause ORDER BY agent, label

-- name: pause
INSERT OR REPLACE INTO pause (agent, label, until, reason, made_at, probe)
VALUES (:agent, :label, :until, :reason, :made_at, :probe)

-- name: resume
DELETE FROM pause WHERE agent = :agent AND label = :label RETURNING 1

-- name: generations
SELECT agent_id, generation_id, superseded FROM session_generation

-- name: generation
SELECT generation_id, superseded FROM session_generation WHERE agent_id = :agent_id

-- name: save generation
INSERT OR REPLACE INTO session_generation (agent_id, generation_id, superseded)
VALUES (:agent_id, :generation_id, :superseded)

-- name: jobs held by session
SELECT job_id FROM job INDEXED BY job_claimant
WHERE claimant_agent = :agent_id AND status = 'running' AND blocked < 2 ORDER BY number

-- name: archivable
-- The newest job stays: its number is the one to count on from.
SELECT job_id FROM job
WHERE job_id IN (SELECT value FROM json_each(:job_ids))
  AND (status = 'completed' OR status = 'error' OR status = 'cancelled')
  AND number < (SELECT max(number) FROM job)

-- name: delete job
DELETE FROM job WHERE job_id = :job_id

-- name: insert archived
INSERT OR REPLACE INTO archive (job_id, number, key, retry_of, root, record, events)
VALUES (:job_id, :number, :key, :retry_of, :root, :record, :events)

-- name: which archived
SELECT job_id FROM archive WHERE job_id IN (SELECT value FROM json_each(:job_ids))

-- name: archived
SELECT record, events FROM archive WHERE job_id = :job_id

-- name: archived by key
SELECT record FROM archive WHERE key = :value

-- name: archived by retry_of
SELECT record FROM archive WHERE retry_of = :value

-- name: archived with prefix
SELECT job_id FROM archive WHERE job_id >= :prefix AND job_id < :behind ORDER BY job_id LIMIT :limit

-- name: archive contents
SELECT number, record, events FROM archive WHERE number > :place ORDER BY number LIMIT :limit

-- name: archive newest first
SELECT number, record, events FROM archive WHERE number < :place ORDER BY number DESC LIMIT :limit

-- name: advance numbers
-- Numbers go on behind the highest that is there.
SELECT :number

-- name: mark unreadable
UPDATE job SET blocked = 2 WHERE number = :number AND blocked < 2

-- name: unreadable jobs
SELECT {columns} FROM job INDEXED BY job_set_aside JOIN prompt USING (number) WHERE blocked = 2 ORDER BY number

-- name: mark readable
UPDATE job SET blocked = 0 WHERE number = :number AND blocked = 2
