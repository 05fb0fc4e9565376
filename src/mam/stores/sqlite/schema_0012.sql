-- Of the jobs that wait for a key the first of each agent of a label may be claimed, and not only the first of a label: one
-- whose agent is paused keeps none of another agent's back.
DROP INDEX job_by_exclusive;
CREATE INDEX job_by_exclusive ON job (waits_for_key, label, agent, priority DESC) WHERE waits_for_key IS NOT NULL;

UPDATE job SET blocked = 0
WHERE blocked = 1 AND NOT EXISTS (SELECT 1 FROM job AS holder WHERE holder.holds_key = job.waits_for_key) AND number IN (
    SELECT number FROM (
        SELECT number, row_number() OVER (PARTITION BY waits_for_key, label, agent ORDER BY priority DESC, number) AS place
        FROM job WHERE waits_for_key IS NOT NULL AND blocked < 2
    ) WHERE place = 1
);
