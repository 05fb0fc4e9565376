-- Less to do for each claim and each completion once more.

-- Numbers never change, and each write of a job's row entered its number anew; now only a registration does.
CREATE TABLE numbered (
    number bigint PRIMARY KEY,
    job_id text COLLATE "C" NOT NULL
);
INSERT INTO numbered SELECT number, job_id FROM job;
ALTER TABLE job DROP CONSTRAINT job_number_key;

-- `blocked` alone says whether a job may be claimed: -1 is one that is not pending. The server reads what an index asks of
-- its rows anew at every write.
UPDATE job SET blocked = -1 WHERE status <> 'pending' AND blocked < 2;
DROP INDEX job_claim, job_claim_by_agent;
CREATE INDEX job_claim ON job (label, priority DESC, number) WHERE blocked = 0;
CREATE INDEX job_claim_by_agent ON job (label, agent, priority DESC, number) WHERE blocked = 0;

-- A session takes its next numbers of the journal together. Entries are read by transaction, and within one by number.
ALTER TABLE journal ALTER COLUMN number SET CACHE 50;
