-- Jobs that come after others, exclusive keys, pauses, secrets and the directory of agents; and less to write for each
-- act.

ALTER TABLE job
    ADD COLUMN agent     text COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN root      text COLLATE "C",  -- the first of a chain of retries, for those that are one
    ADD COLUMN exclusive text,
    ADD COLUMN blocked   integer NOT NULL DEFAULT 0;  -- 1: held back by its exclusive key

UPDATE job SET agent = coalesce(record::json ->> 'agent', '');
WITH RECURSIVE chain (job_id, root) AS (
    SELECT job_id, retry_of FROM job
    WHERE retry_of IS NOT NULL
      AND NOT EXISTS (SELECT FROM job AS old WHERE old.job_id = job.retry_of AND old.retry_of IS NOT NULL)
    UNION ALL
    SELECT job.job_id, chain.root FROM chain JOIN job ON job.retry_of = chain.job_id
)
UPDATE job SET root = chain.root FROM chain WHERE chain.job_id = job.job_id;

-- Most jobs have no key and retry nothing: they need no entry in an index of those that do.
ALTER TABLE job DROP CONSTRAINT job_key_key, DROP CONSTRAINT job_retry_of_key;
CREATE UNIQUE INDEX job_key ON job (key) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX job_retry_of ON job (retry_of) WHERE retry_of IS NOT NULL;

DROP INDEX job_claim;
CREATE INDEX job_claim ON job (label, priority DESC, number) WHERE status = 'pending' AND blocked = 0;
CREATE INDEX job_claim_by_agent ON job (label, agent, priority DESC, number) WHERE status = 'pending' AND blocked = 0;
CREATE INDEX job_by_exclusive ON job (exclusive, label, priority DESC, number)
    WHERE exclusive IS NOT NULL AND status = 'pending';
-- At most one runs under a key, whatever else goes wrong.
CREATE UNIQUE INDEX job_holder ON job (exclusive) WHERE exclusive IS NOT NULL AND status = 'running';
CREATE INDEX job_chain ON job (root, number) WHERE root IS NOT NULL;

-- The journal is only read in its order, so that one index is enough.
ALTER TABLE journal DROP CONSTRAINT journal_pkey, ADD PRIMARY KEY (xact, number);
DROP INDEX journal_order;

-- Who waits for whom, by the first job of a chain of retries; and the ends that those who wait have not been told yet.
CREATE TABLE dependency (
    needs  text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    job_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (needs, number)
);
CREATE INDEX dependency_of ON dependency (job_id);

CREATE TABLE unsettled (
    root  text COLLATE "C" PRIMARY KEY,
    ended text NOT NULL,
    upto  bigint NOT NULL
);

-- Nobody claims what a pause concerns; '' stands for any agent, any label.
CREATE TABLE pause (
    agent   text NOT NULL,
    label   text NOT NULL,
    until   text,
    reason  text,
    made_at text NOT NULL,
    PRIMARY KEY (agent, label)
);

-- What may not stand in a record.
CREATE TABLE secret (
    job_id text COLLATE "C" NOT NULL,
    name   text NOT NULL,
    secret text NOT NULL,
    PRIMARY KEY (job_id, name)
);

-- The directory of live sessions.
CREATE TABLE agent_record (
    agent_id         text COLLATE "C" PRIMARY KEY,
    generation_id    text NOT NULL,
    name             text NOT NULL,
    record           text NOT NULL,
    lease_expires_ms bigint NOT NULL
);
CREATE INDEX agent_record_name ON agent_record (name);
