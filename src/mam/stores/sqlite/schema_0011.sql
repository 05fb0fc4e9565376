-- A new job keeps as much room in its row as a claim and an end will add to it. Otherwise a page that was filled by those who
-- register has to be split when the first job on it is claimed, which takes longer than all the rest of the claim.
--
-- And exclusive keys in columns of their own: an index whose condition names the status is asked at every act, also of the jobs
-- that have no key, and those are most. What they hold follows from the status, and the check says so: a program of an older
-- version that still has the database open knows nothing of them, and is refused.

CREATE TEMP TABLE keyed AS
SELECT number, status, exclusive FROM job WHERE exclusive IS NOT NULL AND (status = 'pending' OR status = 'running');
UPDATE job SET exclusive = NULL WHERE number IN (SELECT number FROM keyed);  -- a check is for all rows, as soon as it is there

ALTER TABLE job ADD COLUMN room BLOB;            -- nothing, while it is as it was registered
ALTER TABLE job ADD COLUMN waits_for_key TEXT;   -- its exclusive key, while it is pending
ALTER TABLE job ADD COLUMN holds_key TEXT        -- its exclusive key, while it runs
    CHECK (exclusive IS NULL OR (waits_for_key IS CASE status WHEN 'pending' THEN exclusive END
                                 AND holds_key IS CASE status WHEN 'running' THEN exclusive END));

DROP INDEX job_by_exclusive;
DROP INDEX job_holder;

UPDATE job SET exclusive = keyed.exclusive,
               waits_for_key = CASE keyed.status WHEN 'pending' THEN keyed.exclusive END,
               holds_key = CASE keyed.status WHEN 'running' THEN keyed.exclusive END
FROM keyed WHERE keyed.number = job.number;
DROP TABLE keyed;

CREATE INDEX job_by_exclusive ON job (waits_for_key, label, priority DESC) WHERE waits_for_key IS NOT NULL;
-- At most one runs under a key, whatever else goes wrong.
CREATE UNIQUE INDEX job_holder ON job (holds_key) WHERE holds_key IS NOT NULL;
