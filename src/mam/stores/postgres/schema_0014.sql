-- Of the jobs that wait for a key the first of each agent of a label may be claimed, and not only the first of a label: one
-- whose agent is paused keeps none of another agent's back. A program of an older version that has the database open
-- names no agent here, and frees fewer.
ALTER TABLE rare ADD COLUMN agent text COLLATE "C" NOT NULL DEFAULT '';
UPDATE rare SET agent = job.agent FROM job WHERE job.job_id = rare.job_id AND rare.exclusive IS NOT NULL;
DROP INDEX rare_by_exclusive;
CREATE INDEX rare_by_exclusive ON rare (exclusive, label, agent, priority DESC, number)
    WHERE exclusive IS NOT NULL AND status = 'pending';

UPDATE job SET blocked = 0
FROM (
    SELECT job_id, exclusive, row_number() OVER (PARTITION BY exclusive, label, agent ORDER BY priority DESC, number) AS place
    FROM rare WHERE exclusive IS NOT NULL AND status = 'pending' AND NOT set_aside
) AS head
WHERE head.job_id = job.job_id AND place = 1 AND blocked = 1
  AND NOT EXISTS (SELECT FROM rare AS holder WHERE holder.exclusive = head.exclusive AND holder.status = 'running');
UPDATE store SET moves = moves + 1;
