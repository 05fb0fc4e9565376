-- Who was registered from inside whom.

ALTER TABLE job ADD COLUMN parent TEXT;
UPDATE job SET parent = json_extract(record, '$.parent_id') WHERE json_extract(record, '$.parent_id') IS NOT NULL;
CREATE INDEX job_parent ON job (parent, number) WHERE parent IS NOT NULL;
