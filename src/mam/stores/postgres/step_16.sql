-- From schema 15: tables of this version that it lacks. Each is in schema.sql too.

ALTER TABLE mam.journal ALTER number SET DEFAULT nextval('mam.journal_number');
DROP FUNCTION mam.next_entry();
-- The order of the journal. A writer takes a shared lock whose key is the last number drawn, then draws its own, which is higher, and
-- holds the lock until others can see its commit. A reader takes the last number that it can see and then looks for the lowest of
-- these keys: each entry up to the lower of the two is there or will never be. So commits do not wait for each other.
CREATE VIEW mam.writer AS
    SELECT ((classid::bigint - 7168366) << 31) + objid::bigint AS key FROM pg_locks
    WHERE locktype = 'advisory' AND classid::bigint BETWEEN 7168366 AND 7200000 AND objsubid = 2
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
CREATE FUNCTION mam.next_entry(news text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE last bigint := coalesce(pg_sequence_last_value('mam.journal_number'), 0);
BEGIN
    PERFORM pg_advisory_xact_lock_shared(7168366 + (last >> 31)::integer, (last & 2147483647)::integer);
    PERFORM mam.tell(news);
    RETURN nextval('mam.journal_number');
END $$;
-- The next entries for a follower: the last settled one is known before the rows are looked at.
CREATE FUNCTION mam.settled_entry() RETURNS bigint LANGUAGE sql AS
    'SELECT coalesce(least((SELECT max(number) FROM mam.journal), (SELECT min(key) FROM mam.writer)), 0)';
CREATE FUNCTION mam.entries(behind bigint, most_number bigint, most bigint)
RETURNS TABLE (number bigint, job_id text, fields json, lines json) LANGUAGE plpgsql AS $$
DECLARE upto bigint := least(most_number, mam.settled_entry());
BEGIN
    RETURN QUERY SELECT entry.number, entry.job_id, entry.fields, entry.lines FROM mam.journal AS entry
        WHERE entry.number > behind AND entry.number <= upto ORDER BY entry.number LIMIT most;
END $$;
CREATE FUNCTION mam.newest_entry() RETURNS TABLE (number bigint, job_id text, lines json) LANGUAGE plpgsql AS $$
DECLARE upto bigint := mam.settled_entry();
BEGIN
    RETURN QUERY SELECT entry.number, entry.job_id, entry.lines FROM mam.journal AS entry
        WHERE entry.number <= upto ORDER BY entry.number DESC LIMIT 1;
END $$;
-- Wakes the connections that listen, if there are any: each holds a shared lock (7168365, 2), and one for each label that it waits
-- for (7168364, its hash). `news` is status, job and label, which is empty when any waiter may have to look. The number says how many
-- wait for the label.
CREATE FUNCTION mam.tell(news text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF pg_try_advisory_lock(7168365, 2) AND pg_advisory_unlock(7168365, 2) AND NOT EXISTS (SELECT FROM pg_listening_channels()) THEN
        RETURN;
    END IF;
    PERFORM pg_notify('mam_news', count(*) || ' ' || news) FROM pg_locks
    WHERE locktype = 'advisory' AND classid = 7168364 AND objsubid = 2
      AND objid::bigint = hashtext(substring(news FROM '^\S* \S* (.*)$')) & 4294967295
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
END $$;
-- Questions.
ALTER TABLE mam.job ADD COLUMN asking smallint NOT NULL DEFAULT 0;
CREATE INDEX job_asking ON mam.job (number) WHERE asking > 0;

-- What attempts leave behind (mam.stores.outputs): the output in pieces, and files that name their content by its hash.
CREATE TABLE mam.output_piece (
    job_id  text COLLATE "C" NOT NULL,
    attempt bigint NOT NULL,
    start   bigint NOT NULL,  -- the offset in the whole output
    data    bytea NOT NULL,
    made_ms bigint NOT NULL,
    PRIMARY KEY (job_id, attempt, start)
);
CREATE INDEX output_piece_made ON mam.output_piece (made_ms);
CREATE TABLE mam.output_file (
    job_id    text COLLATE "C" NOT NULL,
    attempt   bigint NOT NULL,
    kind      text COLLATE "C" NOT NULL,
    path      text COLLATE "C" NOT NULL,
    size      bigint NOT NULL,
    sha256    text COLLATE "C" NOT NULL,
    is_stored boolean NOT NULL,
    made_ms   bigint NOT NULL,
    PRIMARY KEY (job_id, attempt, kind, path)
);
CREATE INDEX output_file_made ON mam.output_file (made_ms);
CREATE TABLE mam.output_content (
    sha256  text COLLATE "C" PRIMARY KEY,
    data    bytea NOT NULL,
    made_ms bigint NOT NULL   -- the newest use
);
CREATE INDEX output_content_made ON mam.output_content (made_ms);

ALTER TABLE mam.store ADD COLUMN summarised_upto bigint NOT NULL DEFAULT 0;  -- before it, the entries of archived jobs are summarised

-- Secrets: each role reads its own.
ALTER TABLE mam.secret ADD COLUMN owner text NOT NULL DEFAULT current_user;
ALTER TABLE mam.secret ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON mam.secret USING (owner = current_user) WITH CHECK (owner = current_user);
-- Tells a role that may not read the secrets of a job that there are some: it must not send unsigned events of a signed job.
CREATE FUNCTION mam.count_secrets(job text) RETURNS bigint LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog
    AS 'SELECT count(*) FROM mam.secret WHERE job_id = job';

-- Continuations: the job that a job continues, and the only host that can claim it (mam.jobs.continuation).
ALTER TABLE mam.job ADD COLUMN continues text COLLATE "C";
ALTER TABLE mam.job ADD COLUMN host text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE mam.archive ADD COLUMN continues text COLLATE "C";
CREATE UNIQUE INDEX job_continues ON mam.job (continues) WHERE continues IS NOT NULL;
CREATE UNIQUE INDEX archive_continues ON mam.archive (continues) WHERE continues IS NOT NULL;
DROP INDEX mam.job_exclusive;
CREATE INDEX job_exclusive ON mam.job (exclusive, label, agent, host, priority DESC, number)
    WHERE exclusive IS NOT NULL AND status = 'pending';

-- Live workers (mam.jobs.workers). A worker renews its row while it lives; `asked` tells it to finish.
CREATE TABLE mam.worker (
    name  text COLLATE "C" PRIMARY KEY,
    entry text NOT NULL,  -- a JSON object
    asked text
);
