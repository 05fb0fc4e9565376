-- A job's number is its place in the table, and its prompt's in the other: who knows the number finds both without going
-- through an index of ids first, and a registration writes one page less. What is in an index is in the order of the
-- numbers where nothing else decides, so no index has to name them.
--
-- And one index for all that is looked for by what a job is up to, instead of four: each that an act has to look at takes
-- its time. A job stands in at most one line: 0 those whose time comes, by the clock that each goes by, 1 those that may be
-- claimed, 2 those that failed or were called off, 3 those that nobody can read. The claimed one moves from the front of
-- line 1 to the end of line 0, which is most often the same page.

CREATE TABLE job_0010 (
    number         INTEGER PRIMARY KEY,
    job_id         TEXT NOT NULL UNIQUE,
    status         TEXT NOT NULL
                   CHECK (status = 'pending' OR status = 'waiting' OR status = 'running'
                          OR status = 'completed' OR status = 'error' OR status = 'cancelled'),
    label          TEXT NOT NULL,
    agent          TEXT NOT NULL,
    priority       INTEGER NOT NULL,
    blocked        INTEGER NOT NULL,  -- 1: held back by its exclusive key; 2: nobody can read it
    created_at     TEXT NOT NULL,
    due_ms         INTEGER,           -- end of the lease or of the wait, wall clock
    boot_id        TEXT,              -- of a lease: the boot whose clock decides
    boot_ms        INTEGER,
    claimant_agent TEXT,
    told           INTEGER,           -- the last entry of the journal that tells something about it
    key            TEXT,
    retry_of       TEXT,
    root           TEXT,              -- the first of a chain of retries, for those that are one
    exclusive      TEXT,
    parent         TEXT,
    record         TEXT NOT NULL,
    line           INTEGER GENERATED ALWAYS AS (
                       CASE WHEN blocked = 2 THEN 3
                            WHEN status = 'pending' THEN CASE blocked WHEN 0 THEN 1 END
                            WHEN due_ms IS NOT NULL THEN 0
                            WHEN status = 'error' OR status = 'cancelled' THEN 2 END
                   ) VIRTUAL,
    line_name      TEXT GENERATED ALWAYS AS (CASE status WHEN 'pending' THEN label ELSE coalesce(boot_id, '') END) VIRTUAL,
    line_agent     TEXT GENERATED ALWAYS AS (CASE status WHEN 'pending' THEN agent ELSE '' END) VIRTUAL,
    line_rank      INTEGER GENERATED ALWAYS AS (
                       CASE status WHEN 'pending' THEN -priority ELSE coalesce(boot_ms, due_ms, 0) END
                   ) VIRTUAL,
    CHECK (status <> 'running' OR due_ms IS NOT NULL)
) STRICT;

INSERT INTO job_0010 (number, job_id, status, label, agent, priority, blocked, created_at, due_ms, boot_id, boot_ms,
                      claimant_agent, told, key, retry_of, root, exclusive, parent, record)
SELECT number, job_id, status, label, agent, priority, blocked, created_at, due_ms, boot_id, boot_ms, claimant_agent, told,
       key, retry_of, root, exclusive, parent, record
FROM job ORDER BY number;

CREATE TABLE prompt_0010 (
    number INTEGER PRIMARY KEY REFERENCES job_0010 (number) ON DELETE CASCADE,
    prompt TEXT NOT NULL
) STRICT;

INSERT INTO prompt_0010 SELECT number, prompt FROM job JOIN prompt USING (job_id) ORDER BY number;

DROP TABLE prompt;
DROP TABLE job;
ALTER TABLE job_0010 RENAME TO job;
ALTER TABLE prompt_0010 RENAME TO prompt;

CREATE UNIQUE INDEX job_key ON job (key) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX job_retry_of ON job (retry_of) WHERE retry_of IS NOT NULL;
CREATE INDEX job_line ON job (line, line_name, line_agent, line_rank) WHERE line IS NOT NULL;
CREATE INDEX job_by_exclusive ON job (exclusive, label, priority DESC) WHERE exclusive IS NOT NULL AND status = 'pending';
-- At most one runs under a key, whatever else goes wrong.
CREATE UNIQUE INDEX job_holder ON job (exclusive) WHERE exclusive IS NOT NULL AND status = 'running';
CREATE INDEX job_chain ON job (root) WHERE root IS NOT NULL;
CREATE INDEX job_claimant ON job (claimant_agent) WHERE claimant_agent IS NOT NULL;
CREATE INDEX job_parent ON job (parent) WHERE parent IS NOT NULL;
