-- Fewer pages to write for each act. What is told about a job is read where it stands anyway, in the journal: each entry
-- that tells something names the one before it, and the job names the last. And one index of what may be claimed, not two.

ALTER TABLE job ADD COLUMN told INTEGER;      -- the last entry of the journal that tells something about it
ALTER TABLE journal ADD COLUMN told INTEGER;  -- the one before this that does, of the same job

-- A job that came from another registry brought all that had been told in one entry: its chain begins there.
WITH telling (number, job_id, comes) AS (
    SELECT number, job_id, json_extract(lines, '$[0].event') = 'migrated' FROM journal
    WHERE EXISTS (SELECT 1 FROM json_each(journal.lines) AS line
                  WHERE json_extract(line.value, '$.event') IN ('published', 'reserved', 'imported'))
), chain (number, before) AS (
    SELECT number, CASE WHEN comes THEN NULL ELSE lag(number) OVER (PARTITION BY job_id ORDER BY number) END FROM telling
)
UPDATE journal SET told = chain.before FROM chain WHERE chain.number = journal.number;

UPDATE job SET told = last.number
FROM (SELECT job_id, max(number) AS number FROM journal
      WHERE EXISTS (SELECT 1 FROM json_each(journal.lines) AS line
                    WHERE json_extract(line.value, '$.event') IN ('published', 'reserved', 'imported'))
      GROUP BY job_id) AS last
WHERE last.job_id = job.job_id;

DROP TABLE event;

DROP INDEX job_claim;
DROP INDEX job_claim_by_agent;
CREATE INDEX job_claim ON job (label, agent, priority DESC, number) WHERE status = 'pending' AND blocked = 0;
