-- From schema 13: tables of this version that it lacks. Each is in schema.sql too.

-- Questions.
ALTER TABLE job ADD COLUMN asking INTEGER NOT NULL DEFAULT 0;
CREATE INDEX job_asking ON job (number) WHERE asking > 0;

ALTER TABLE store ADD COLUMN summarised_upto INTEGER NOT NULL DEFAULT 0;  -- before it, the entries of archived jobs are summarised
