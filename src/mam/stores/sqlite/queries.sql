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
SELECT record, prompt FROM job JOIN prompt USING (number) WHERE job_id = :job_id

-- name: job to change
SELECT record, prompt, root FROM job JOIN prompt USING (number) WHERE job_id = :job_id

-- name: jobs to change
SELECT record, prompt, root FROM job JOIN prompt USING (number)
WHERE job_id IN (SELECT value FROM json_each(:job_ids)) ORDER BY number

-- name: job with key
SELECT record, prompt FROM job JOIN prompt USING (number) WHERE key = :key
UNION ALL
SELECT record, prompt FROM archive WHERE key = :key

-- name: job that retries
SELECT record, prompt FROM job JOIN prompt USING (number) WHERE retry_of = :retry_of
UNION ALL
SELECT record, prompt FROM archive WHERE retry_of = :retry_of

-- name: taken
SELECT 1 FROM job WHERE job_id = :job_id UNION ALL SELECT 1 FROM archive WHERE job_id = :job_id

-- name: root
SELECT coalesce((SELECT root FROM job WHERE job_id = :job_id), (SELECT root FROM archive WHERE job_id = :job_id), :job_id)

-- name: next number
SELECT coalesce(max(number), 0) + 1 FROM job

-- name: ready
-- The first of a label whose jobs are all for one agent, as most are; and whether that has to be looked at more closely:
-- it has a key, there are other agents, somebody's time has come, an end has not been told to all yet, something is paused.
-- With no job there is nothing to hurry for, and each of these is asked for by itself.
-- INDEXED BY: a planner that has seen statistics may walk the whole table instead.
SELECT record, prompt, root,
       exclusive IS NOT NULL
       OR agent <> (SELECT max(other.line_agent) FROM job AS other INDEXED BY job_line
                 WHERE other.line = 1 AND other.line_name = :label)
       OR EXISTS (SELECT 1 FROM job INDEXED BY job_line
                  WHERE line = 0 AND line_name = :boot_id AND line_agent = '' AND line_rank <= :boot_ms AND :boot_id <> '')
       OR EXISTS (SELECT 1 FROM job INDEXED BY job_line
                  WHERE line = 0 AND line_name = '' AND line_agent = '' AND line_rank <= :wall_ms)
       OR EXISTS (SELECT 1 FROM unsettled) OR EXISTS (SELECT 1 FROM pause)
FROM job INDEXED BY job_line JOIN prompt USING (number)
WHERE line = 1 AND line_name = :label
ORDER BY line_agent, line_rank, number LIMIT 1

-- name: first of others
-- From agent to agent, so that ten thousand jobs of one that is passed over are one step.
WITH RECURSIVE agents (agent) AS (
    SELECT min(line_agent) FROM job INDEXED BY job_line WHERE line = 1 AND line_name = :label
    UNION ALL
    SELECT (SELECT min(line_agent) FROM job INDEXED BY job_line
            WHERE line = 1 AND line_name = :label AND line_agent > agents.agent)
    FROM agents WHERE agents.agent IS NOT NULL
)
SELECT record, prompt, root FROM job JOIN prompt USING (number)
WHERE number IN (
    SELECT (SELECT number FROM job INDEXED BY job_line
            WHERE line = 1 AND line_name = :label AND line_agent = agents.agent
            ORDER BY line_rank, number LIMIT 1)
    FROM agents WHERE agent IS NOT NULL AND agent NOT IN (SELECT value FROM json_each(:skipped))
)
ORDER BY priority DESC, number LIMIT 1

-- name: this pending
SELECT record, prompt, root FROM job JOIN prompt USING (number)
WHERE job_id = :job_id AND line = 1 AND label = :label
  AND agent NOT IN (SELECT value FROM json_each(:skipped))

-- name: other boots
-- Leases of an earlier boot go by the wall clock. No process outlives its boot, so this is asked once by each.
UPDATE job SET boot_id = NULL, boot_ms = NULL
WHERE boot_id <> :boot_id AND number IN (
    SELECT number FROM job INDEXED BY job_line WHERE line = 0 AND line_name > '' AND line_name < :boot_id
    UNION ALL
    SELECT number FROM job INDEXED BY job_line WHERE line = 0 AND line_name > :boot_id
    UNION ALL
    SELECT number FROM job INDEXED BY job_line WHERE line = 3
)

-- name: due
-- Whose time has come by the clock that each goes by. Behind them, rows that are no jobs: an end has not been told to
-- all yet; something is paused.
SELECT late, record, prompt, root FROM (
    SELECT :boot_ms - line_rank AS late, number, record, root FROM job INDEXED BY job_line
    WHERE line = 0 AND line_name = :boot_id AND line_agent = '' AND line_rank <= :boot_ms AND :boot_id <> ''
    ORDER BY line_rank LIMIT :limit
) JOIN prompt USING (number)
UNION ALL
SELECT late, record, prompt, root FROM (
    SELECT :wall_ms - line_rank AS late, number, record, root FROM job INDEXED BY job_line
    WHERE line = 0 AND line_name = '' AND line_agent = '' AND line_rank <= :wall_ms
    ORDER BY line_rank LIMIT :limit
) JOIN prompt USING (number)
UNION ALL
SELECT NULL, 'unsettled', NULL, NULL WHERE EXISTS (SELECT 1 FROM unsettled)
UNION ALL
SELECT NULL, 'paused', NULL, NULL WHERE EXISTS (SELECT 1 FROM pause)

-- name: next due
SELECT (SELECT min(line_rank) FROM job INDEXED BY job_line
        WHERE line = 0 AND line_name = :boot_id AND line_agent = '' AND :boot_id <> '') - :boot_ms,
       (SELECT min(line_rank) FROM job INDEXED BY job_line
        WHERE line = 0 AND line_name = '' AND line_agent = '') - :wall_ms,
       (SELECT 0 WHERE EXISTS (SELECT 1 FROM unsettled))

-- name: insert job
-- 320: what a claim and an end add to a record that has nothing unusual in it.
INSERT INTO job (job_id, number, status, label, agent, priority, created_at, key, retry_of, root, exclusive, blocked,
                 due_ms, boot_id, boot_ms, claimant_agent, parent, told, record, room, waits_for_key, holds_key)
VALUES (:job_id, :number, :status, :label, :agent, :priority, :created_at, :key, :retry_of, :root, :exclusive, :blocked,
        :due_ms, :boot_id, :boot_ms, :claimant_agent, :parent, CASE WHEN :tells THEN last_insert_rowid() END, :record,
        CASE WHEN :status = 'pending' OR :status = 'waiting' THEN zeroblob(320) END,
        CASE WHEN :status = 'pending' THEN :exclusive END, CASE WHEN :status = 'running' THEN :exclusive END)

-- name: children
SELECT job_id FROM job INDEXED BY job_parent WHERE parent = :parent ORDER BY number

-- name: insert prompt
INSERT INTO prompt (number, prompt) VALUES (:number, :prompt)

-- name: update job
UPDATE job
SET status = :status, blocked = :blocked, due_ms = :due_ms, boot_id = :boot_id, boot_ms = :boot_ms,
    claimant_agent = :claimant_agent, told = CASE WHEN :tells THEN last_insert_rowid() ELSE told END, record = :record,
    room = NULL, waits_for_key = CASE WHEN :status = 'pending' THEN exclusive END,
    holds_key = CASE WHEN :status = 'running' THEN exclusive END
WHERE number = :number AND job_id = :job_id

-- name: claim plain job
-- One that has no key, comes after nobody and is held by no session. What is left out need not be compared by its indexes.
UPDATE job
SET status = 'running', due_ms = :due_ms, boot_id = :boot_id, boot_ms = :boot_ms, record = :record, room = NULL
WHERE number = :number AND job_id = :job_id

-- name: update known job
-- The same, only if it is still as it was known to be, and its end concerns nobody else.
UPDATE job
SET status = :status, due_ms = :due_ms, boot_id = :boot_id, boot_ms = :boot_ms,
    told = CASE WHEN :tells THEN last_insert_rowid() ELSE told END, record = :record, room = NULL
WHERE number = :number AND record = :before AND exclusive IS NULL
  AND NOT EXISTS (SELECT 1 FROM dependency WHERE needs = coalesce(job.root, job.job_id))

-- name: end known job
-- The same for an end, which tells something and waits for nothing.
UPDATE job
SET status = :status, due_ms = NULL, boot_id = NULL, boot_ms = NULL, told = last_insert_rowid(), record = :record,
    room = NULL
WHERE number = :number AND record = :before AND exclusive IS NULL
  AND NOT EXISTS (SELECT 1 FROM dependency WHERE needs = coalesce(job.root, job.job_id))

-- name: take entry back
-- The last one, of a transaction that nobody has seen yet.
DELETE FROM journal WHERE number = last_insert_rowid()

-- name: insert entry
INSERT INTO journal (job_id, fields, lines) VALUES (:job_id, :fields, :lines)

-- name: insert next entry
-- One that tells something and names the one before it that does. The job's own row is written behind it and names it.
INSERT INTO journal (job_id, fields, lines, told)
VALUES (:job_id, :fields, :lines, (SELECT told FROM job WHERE number = :number))

-- name: ids with prefix
SELECT job_id FROM job WHERE job_id >= :prefix AND job_id < :behind ORDER BY job_id LIMIT :limit

-- name: select
-- Page by page, so that no reader holds the write-ahead log back.
SELECT record, prompt, job_id, number FROM job JOIN prompt USING (number)
WHERE number < :below AND (:label IS NULL OR label = :label) AND (:since IS NULL OR created_at >= :since)
  AND status IN (SELECT value FROM json_each(:statuses))
ORDER BY number DESC LIMIT :limit

-- name: select failed
-- The same of those that failed or were called off, which may be few among a million.
SELECT record, prompt, job_id, number FROM job INDEXED BY job_line JOIN prompt USING (number)
WHERE line = 2 AND line_name = '' AND line_agent = '' AND line_rank = 0 AND number < :below
  AND (:label IS NULL OR label = :label) AND (:since IS NULL OR created_at >= :since)
  AND status IN (SELECT value FROM json_each(:statuses))
ORDER BY number DESC LIMIT :limit

-- name: select numbered
SELECT record, prompt, job_id, number FROM job JOIN prompt USING (number)
WHERE number IN (SELECT value FROM json_each(:numbers)) AND (:label IS NULL OR label = :label)
  AND (:since IS NULL OR created_at >= :since) AND status IN (SELECT value FROM json_each(:statuses))
ORDER BY number DESC

-- name: open numbers
-- Of the jobs that have not ended, by the indexes of those who claim and sweep; that there are more than a limit is all
-- that is wanted to know of many.
SELECT number FROM (SELECT number FROM job INDEXED BY job_line WHERE line <= 1 LIMIT :limit)
UNION
SELECT number FROM (SELECT number FROM job INDEXED BY job_by_exclusive
                    WHERE waits_for_key IS NOT NULL LIMIT :limit)
UNION
SELECT number FROM (SELECT number FROM dependency LIMIT :limit)
UNION
SELECT number FROM (SELECT number FROM job INDEXED BY job_line WHERE line = 3 LIMIT :limit)
ORDER BY number DESC LIMIT :limit

-- name: ahead
-- Those that a key holds back count too, and are in another index.
SELECT (SELECT count(*) FROM job INDEXED BY job_line
        WHERE line = 1 AND line_name = :label
          AND (line_rank < -:priority OR (line_rank = -:priority AND number < :number)))
     + (SELECT count(*) FROM job INDEXED BY job_by_exclusive
        WHERE waits_for_key IS NOT NULL AND label = :label AND blocked <> 0
          AND (priority > :priority OR (priority = :priority AND number < :number)))

-- name: holder
SELECT job_id FROM job WHERE holds_key = :key

-- name: block key
-- Only the heads are free, one for each agent of a label, so this touches few rows however many wait for the key.
UPDATE job SET blocked = 1 WHERE waits_for_key = :key AND blocked = 0

-- name: free heads
WITH RECURSIVE head (number, label, agent) AS (
    SELECT * FROM (SELECT number, label, agent FROM job WHERE waits_for_key = :key AND blocked < 2
                   ORDER BY label, agent, priority DESC, number LIMIT 1)
    UNION ALL
    SELECT job.number, job.label, job.agent
    FROM head JOIN job ON job.number = (SELECT number FROM job WHERE waits_for_key = :key AND blocked < 2
                                          AND (label, agent) > (head.label, head.agent)
                                        ORDER BY label, agent, priority DESC, number LIMIT 1)
)
UPDATE job SET blocked = 0 WHERE number IN (SELECT number FROM head)

-- name: events
WITH RECURSIVE chain (number, lines, told) AS (
    SELECT number, lines, told FROM journal WHERE number = (SELECT told FROM job WHERE job_id = :job_id)
    UNION ALL
    SELECT journal.number, journal.lines, journal.told FROM chain JOIN journal ON journal.number = chain.told
)
SELECT lines FROM chain ORDER BY number

-- name: last entry
SELECT coalesce(max(number), 0) FROM journal

-- name: entries
SELECT number, job_id, fields, lines FROM journal WHERE number > :after AND number <= :upto ORDER BY number LIMIT :limit

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

-- name: announce
INSERT OR REPLACE INTO session_generation (agent_id, generation_id, superseded)
VALUES (:agent_id, :generation_id, :superseded)

-- name: held by
SELECT job_id FROM job INDEXED BY job_claimant
WHERE claimant_agent = :agent_id AND status = 'running' ORDER BY number

-- name: to archive
-- The newest stays: its number is the one to count on from.
SELECT job_id, number, key, retry_of, root, record, prompt FROM job JOIN prompt USING (number)
WHERE job_id IN (SELECT value FROM json_each(:job_ids)) AND status IN ('completed', 'error', 'cancelled')
  AND number < (SELECT max(number) FROM job)

-- name: forget job
DELETE FROM job WHERE job_id = :job_id

-- name: only archived
SELECT job_id FROM archive
WHERE job_id IN (SELECT value FROM json_each(:job_ids)) AND job_id NOT IN (SELECT job_id FROM job)

-- name: archived
SELECT record, prompt, events FROM archive WHERE job_id = :job_id

-- name: archived with prefix
SELECT job_id FROM archive WHERE job_id >= :prefix AND job_id < :behind ORDER BY job_id LIMIT :limit

-- name: archive contents
SELECT number, record, prompt, events FROM archive WHERE number > :place ORDER BY number LIMIT :limit

-- name: archive newest first
SELECT number, record, prompt, events FROM archive WHERE number < :place ORDER BY number DESC LIMIT :limit

-- name: newest archived
-- Of the chain that an archived job belongs to, whether the others are archived too or not.
WITH chain (root) AS (SELECT coalesce(root, job_id) FROM archive WHERE job_id = :job_id)
SELECT record, prompt FROM (
    SELECT number, record, prompt FROM job JOIN prompt USING (number) WHERE root IN (SELECT root FROM chain)
    UNION ALL
    SELECT number, record, prompt FROM archive WHERE root IN (SELECT root FROM chain) OR job_id IN (SELECT root FROM chain)
)
ORDER BY number DESC LIMIT 1

-- name: put into archive
INSERT OR REPLACE INTO archive (job_id, number, key, retry_of, root, record, prompt, events)
VALUES (:job_id, :number, :key, :retry_of, :root, :record, :prompt, :events)

-- name: number behind
-- Numbers go on behind the highest that is there.
SELECT :number

-- name: set aside
-- A row that nobody can read; there is nothing else to find it by.
UPDATE job SET blocked = 2 WHERE record = :record AND blocked < 2 RETURNING job_id

-- name: those set aside
SELECT record, prompt, job_id, number, status, label, exclusive FROM job INDEXED BY job_line JOIN prompt USING (number)
WHERE line = 3 ORDER BY number

-- name: take back
UPDATE job SET blocked = 0 WHERE job_id = :job_id AND blocked = 2
