-- From schema 15: tables of this version that it lacks. Each is in schema.sql too.

-- Questions.
ALTER TABLE mam.job ADD COLUMN asking smallint NOT NULL DEFAULT 0;
CREATE INDEX job_asking ON mam.job (number) WHERE asking > 0;
