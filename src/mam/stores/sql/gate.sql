-- What stands between a job and its claim, in SQLite's words: those of the index of a files store. The SQLite store says what
-- concerns exclusive keys in words of its own, and PostgreSQL everything, by the same names.
-- `root` is the first job of a chain of retries, NULL for a job that retries none.

-- name: holder
SELECT job_id FROM job WHERE exclusive = :key AND status = 'running' LIMIT 1

-- name: block key
-- Only the heads are free, one for each agent of a label, so this touches few rows however many wait for the key.
UPDATE job SET blocked = 1 WHERE exclusive = :key AND status = 'pending' AND blocked = 0

-- name: free heads
WITH RECURSIVE head (job_id, label, agent) AS (
    SELECT * FROM (SELECT job_id, label, agent FROM job
                   WHERE exclusive = :key AND status = 'pending' AND blocked < 2
                   ORDER BY label, agent, priority DESC, number LIMIT 1)
    UNION ALL
    SELECT job.job_id, job.label, job.agent
    FROM head JOIN job ON job.job_id = (SELECT job_id FROM job
                                        WHERE exclusive = :key AND status = 'pending' AND blocked < 2
                                          AND (label, agent) > (head.label, head.agent)
                                        ORDER BY label, agent, priority DESC, number LIMIT 1)
)
UPDATE job SET blocked = 0 WHERE job_id IN (SELECT job_id FROM head)

-- name: newest
SELECT job_id FROM job
WHERE root = coalesce((SELECT root FROM job WHERE job_id = :job_id), :job_id)
ORDER BY number DESC LIMIT 1

-- name: needs
INSERT OR IGNORE INTO dependency (needs, number, job_id)
VALUES (coalesce((SELECT root FROM job WHERE job_id = :needs), :needs), :number, :job_id)

-- name: needs no more
DELETE FROM dependency WHERE job_id = :job_id

-- name: ended
-- Nobody is looked at here: who ends a job does not pay for those that come after it.
INSERT INTO unsettled (root, ended, upto)
SELECT needs, :job_id, 0 FROM dependency WHERE needs = coalesce(:root, :job_id) LIMIT 1
ON CONFLICT (root) DO UPDATE SET ended = excluded.ended, upto = 0

-- name: unsettled
SELECT root, ended, upto FROM unsettled ORDER BY root LIMIT 1

-- name: dependents
-- Oldest first, as claims would take them.
SELECT number, job_id FROM dependency WHERE needs = :root AND number > :upto ORDER BY number LIMIT :limit

-- name: settled upto
UPDATE unsettled SET upto = :upto WHERE root = :root AND ended = :ended

-- name: settled
DELETE FROM unsettled WHERE root = :root AND ended = :ended
