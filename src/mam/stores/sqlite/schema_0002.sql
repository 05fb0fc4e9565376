-- Jobs that come after others, exclusive keys, pauses; and fewer pages to write for each act.

ALTER TABLE job ADD COLUMN agent TEXT NOT NULL DEFAULT '';
ALTER TABLE job ADD COLUMN root TEXT;       -- the first of a chain of retries, for those that are one
ALTER TABLE job ADD COLUMN exclusive TEXT;
ALTER TABLE job ADD COLUMN blocked INTEGER NOT NULL DEFAULT 0;  -- 1: held back by its exclusive key

UPDATE job SET agent = coalesce(json_extract(record, '$.agent'), '');
WITH RECURSIVE chain (job_id, root) AS (
    SELECT job_id, retry_of FROM job
    WHERE retry_of IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM job AS old WHERE old.job_id = job.retry_of AND old.retry_of IS NOT NULL)
    UNION ALL
    SELECT job.job_id, chain.root FROM chain JOIN job ON job.retry_of = chain.job_id
)
UPDATE job SET root = chain.root FROM chain WHERE chain.job_id = job.job_id;

DROP INDEX job_claim;
CREATE INDEX job_claim ON job (label, priority DESC, number) WHERE status = 'pending' AND blocked = 0;
CREATE INDEX job_claim_by_agent ON job (label, agent, priority DESC, number) WHERE status = 'pending' AND blocked = 0;
CREATE INDEX job_by_exclusive ON job (exclusive, label, priority DESC, number)
    WHERE exclusive IS NOT NULL AND status = 'pending';
-- At most one runs under a key, whatever else goes wrong.
CREATE UNIQUE INDEX job_holder ON job (exclusive) WHERE exclusive IS NOT NULL AND status = 'running';
CREATE INDEX job_chain ON job (root, number) WHERE root IS NOT NULL;

-- One index for both clocks: an act writes one page of it and not two.
DROP INDEX job_due_by_wall;
DROP INDEX job_due_by_boot;
CREATE INDEX job_due ON job (coalesce(boot_id, ''), coalesce(boot_ms, due_ms)) WHERE due_ms IS NOT NULL;

-- The journal without AUTOINCREMENT, which writes a page more at every act. Its last row is never deleted, so that no
-- number is given twice.
CREATE TABLE journal_0002 (
    number INTEGER PRIMARY KEY,
    job_id TEXT NOT NULL,
    fields TEXT,
    lines  TEXT NOT NULL
) STRICT;
INSERT INTO journal_0002 SELECT number, job_id, fields, lines FROM journal ORDER BY number;
DROP TABLE journal;
ALTER TABLE journal_0002 RENAME TO journal;

-- Who waits for whom, by the first job of a chain of retries; and the ends that those who wait have not been told yet.
CREATE TABLE dependency (
    needs  TEXT NOT NULL,
    number INTEGER NOT NULL,
    job_id TEXT NOT NULL,
    PRIMARY KEY (needs, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX dependency_of ON dependency (job_id);

CREATE TABLE unsettled (
    root  TEXT PRIMARY KEY,
    ended TEXT NOT NULL,
    upto  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Nobody claims what a pause concerns; '' stands for any agent, any label.
CREATE TABLE pause (
    agent   TEXT NOT NULL,
    label   TEXT NOT NULL,
    until   TEXT,
    reason  TEXT,
    made_at TEXT NOT NULL,
    PRIMARY KEY (agent, label)
) STRICT, WITHOUT ROWID;
