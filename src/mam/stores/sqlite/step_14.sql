-- From schema 13: tables of this version that it lacks. Each is in schema.sql too.

-- Questions.
ALTER TABLE job ADD COLUMN asking INTEGER NOT NULL DEFAULT 0;
CREATE INDEX job_asking ON job (number) WHERE asking > 0;

ALTER TABLE store ADD COLUMN summarised_upto INTEGER NOT NULL DEFAULT 0;  -- before it, the entries of archived jobs are summarised

-- Continuations: the job that a job continues, and the only host that can claim it (mam.jobs.continuation).
ALTER TABLE job ADD COLUMN continues TEXT;
ALTER TABLE job ADD COLUMN host TEXT NOT NULL DEFAULT '';
ALTER TABLE archive ADD COLUMN continues TEXT;
CREATE UNIQUE INDEX job_continues ON job (continues) WHERE continues IS NOT NULL;
CREATE UNIQUE INDEX archive_continues ON archive (continues) WHERE continues IS NOT NULL;
DROP INDEX job_exclusive;
CREATE INDEX job_exclusive ON job (exclusive, label, agent, host, priority DESC, number)
    WHERE exclusive IS NOT NULL AND status = 'pending';

-- Live workers (mam.jobs.workers). A worker renews its row while it lives; `asked` tells it to finish.
CREATE TABLE worker (
    name  TEXT PRIMARY KEY,
    entry TEXT NOT NULL,  -- a JSON object
    asked TEXT
) STRICT, WITHOUT ROWID;
