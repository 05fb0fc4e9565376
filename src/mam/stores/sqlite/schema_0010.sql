-- A job's number is its place in the table, and its prompt's in the other: who knows the number finds both without going
-- through an index of ids first, and a registration writes one page less. What is in an index is in the order of the
-- numbers where nothing else decides, so no index has to name them.

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
    CHECK (status <> 'running' OR due_ms IS NOT NULL)
) STRICT;

INSERT INTO job_0010
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
CREATE INDEX job_claim ON job (label, agent, priority DESC) WHERE status = 'pending' AND blocked = 0;
CREATE INDEX job_by_exclusive ON job (exclusive, label, priority DESC) WHERE exclusive IS NOT NULL AND status = 'pending';
-- At most one runs under a key, whatever else goes wrong.
CREATE UNIQUE INDEX job_holder ON job (exclusive) WHERE exclusive IS NOT NULL AND status = 'running';
CREATE INDEX job_chain ON job (root) WHERE root IS NOT NULL;
CREATE INDEX job_due ON job (coalesce(boot_id, ''), coalesce(boot_ms, due_ms)) WHERE due_ms IS NOT NULL;
CREATE INDEX job_claimant ON job (claimant_agent) WHERE claimant_agent IS NOT NULL;
CREATE INDEX job_parent ON job (parent) WHERE parent IS NOT NULL;
CREATE INDEX job_failed ON job (number) WHERE status IN ('error', 'cancelled');
CREATE INDEX job_set_aside ON job (number) WHERE blocked = 2;
