-- Less to do for each claim and each completion. Every write opens all indexes of its table and weighs those that are for
-- some rows only, so what only few jobs have stands in a table of its own, with its indexes: keys, retries, parents and
-- exclusive keys; and who is held by a session, has failed or cannot be read.

CREATE TABLE rare (
    job_id         text COLLATE "C" PRIMARY KEY,
    number         bigint NOT NULL,
    key            text,
    retry_of       text,
    root           text COLLATE "C",
    parent         text COLLATE "C",
    exclusive      text,
    label          text NOT NULL,
    priority       integer NOT NULL,
    status         text NOT NULL,  -- kept up to date only where one of these indexes asks for it
    claimant_agent text COLLATE "C",
    set_aside      boolean NOT NULL DEFAULT false
);

INSERT INTO rare
SELECT job_id, number, key, retry_of, root, parent, exclusive, label, priority, status, claimant_agent, blocked = 2
FROM job
WHERE key IS NOT NULL OR retry_of IS NOT NULL OR root IS NOT NULL OR parent IS NOT NULL OR exclusive IS NOT NULL
   OR claimant_agent IS NOT NULL OR status IN ('error', 'cancelled') OR blocked = 2;

DROP INDEX job_key, job_retry_of, job_chain, job_parent, job_by_exclusive, job_holder, job_claimant, job_failed, job_set_aside;
ALTER TABLE job DROP COLUMN key, DROP COLUMN retry_of, DROP COLUMN parent, DROP COLUMN claimant_agent;

CREATE UNIQUE INDEX rare_key ON rare (key) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX rare_retry_of ON rare (retry_of) WHERE retry_of IS NOT NULL;
CREATE INDEX rare_chain ON rare (root, number) WHERE root IS NOT NULL;
CREATE INDEX rare_parent ON rare (parent, number) WHERE parent IS NOT NULL;
CREATE INDEX rare_by_exclusive ON rare (exclusive, label, priority DESC, number)
    WHERE exclusive IS NOT NULL AND status = 'pending';
-- At most one runs under a key, whatever else goes wrong.
CREATE UNIQUE INDEX rare_holder ON rare (exclusive) WHERE exclusive IS NOT NULL AND status = 'running';
CREATE INDEX rare_claimant ON rare (claimant_agent) WHERE claimant_agent IS NOT NULL AND status = 'running';
CREATE INDEX rare_failed ON rare (number) WHERE status IN ('error', 'cancelled');
CREATE INDEX rare_set_aside ON rare (number) WHERE set_aside;

-- Somebody comes after this job, so that its end has to be told; whoever ends one that nobody comes after need not look.
ALTER TABLE job ADD COLUMN awaited boolean NOT NULL DEFAULT false;
UPDATE job SET awaited = true WHERE job_id IN (SELECT needs FROM dependency);

-- What is told at the end of most jobs stands in the journal anyway, in the entry of this transaction: an end in one trip
-- leaves it there. What is told else has a row of its own, as before.
ALTER TABLE job ADD COLUMN ended_xact xid8;
CREATE VIEW told AS
SELECT job_id, seq, event FROM event
UNION ALL
SELECT job.job_id, (line -> 'payload' ->> 'seq')::bigint, (line -> 'payload')::text
FROM job
JOIN journal ON journal.xact = job.ended_xact AND journal.job_id = job.job_id
CROSS JOIN LATERAL json_array_elements(journal.lines::json) AS line
WHERE line ->> 'event' = 'published';
