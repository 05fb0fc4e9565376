-- A new job keeps as much room in its row as a claim and an end will add to it. Otherwise a page that was filled by those who
-- register has to be split when the first job on it is claimed, which takes longer than all the rest of the claim.
--
-- And exclusive keys in columns of their own: an index whose condition names the status is asked at every act, also of the jobs
-- that have no key, and those are most.

ALTER TABLE job ADD COLUMN room BLOB;            -- nothing, while it is as it was registered
ALTER TABLE job ADD COLUMN waits_for_key TEXT;   -- its exclusive key, while it is pending
ALTER TABLE job ADD COLUMN holds_key TEXT;       -- its exclusive key, while it runs

UPDATE job SET waits_for_key = exclusive WHERE exclusive IS NOT NULL AND status = 'pending';
UPDATE job SET holds_key = exclusive WHERE exclusive IS NOT NULL AND status = 'running';

DROP INDEX job_by_exclusive;
DROP INDEX job_holder;
CREATE INDEX job_by_exclusive ON job (waits_for_key, label, priority DESC) WHERE waits_for_key IS NOT NULL;
-- At most one runs under a key, whatever else goes wrong.
CREATE UNIQUE INDEX job_holder ON job (holds_key) WHERE holds_key IS NOT NULL;
