-- One registry in one schema of a database. Fields that mam queries, orders by, fences or shows have columns; `extra` holds the
-- other fields of a record as JSON. Times are text, as in the record; `due_ms` is on the server's wall clock.

CREATE TABLE mam.store (
    one        integer PRIMARY KEY CHECK (one = 1),
    version    integer NOT NULL,  -- of this schema; below zero while `mam migrate` fills the registry
    journal_id text NOT NULL,     -- names this journal
    summarised_upto bigint NOT NULL DEFAULT 0  -- before it, the entries of archived jobs are summarised
);

CREATE SEQUENCE mam.job_number;
-- Checks cost every claim and every end a tenth of the server's time, so there are few: mam sets a row aside that it cannot read.
CREATE TABLE mam.job (
    number              bigint PRIMARY KEY,
    job_id              text COLLATE "C" NOT NULL UNIQUE,
    version             bigint NOT NULL DEFAULT 1,
    status              text COLLATE "C" NOT NULL
                        CHECK (status IN ('pending', 'waiting', 'running', 'completed', 'error', 'cancelled')),
    label               text COLLATE "C" NOT NULL,
    agent               text COLLATE "C" NOT NULL,
    priority            bigint NOT NULL,
    blocked             smallint NOT NULL DEFAULT 0,     -- 1: a job ahead of it has the same exclusive key; 2: mam cannot read it
    awaited             boolean NOT NULL DEFAULT false,  -- other jobs depend on it
    created_at          text COLLATE "C" NOT NULL,
    updated_at          text COLLATE "C" NOT NULL,
    claimed_at          text,
    heard_at            text,
    ended_at            text,
    attempt             bigint NOT NULL,
    claim_id            text,
    owner               text,
    supervised          boolean NOT NULL,
    claimant_agent      text COLLATE "C",
    claimant_generation text,
    lease_expires_at    text,
    lease_seconds       double precision,
    lease_boot_id       text,
    lease_boot_ms       bigint,
    waiting_for         text,
    due_at              text,
    due_ms              bigint,                          -- when the lease or the wait ends
    ended_attempt       bigint,
    losses              bigint NOT NULL,
    max_losses          bigint NOT NULL,
    retries             bigint NOT NULL,
    max_retries         bigint NOT NULL,
    timeout_sec         integer NOT NULL,
    idle_timeout_sec    integer NOT NULL,
    last_seq            bigint NOT NULL,
    reason              text,
    result              text,
    checked             boolean,
    expected_artifacts  json NOT NULL,
    said                json,
    checks              json,
    run                 json,
    key                 text,
    retry_of            text COLLATE "C",
    root                text COLLATE "C",                -- the first job of its chain of retries, if it retries one
    parent_id           text COLLATE "C",
    exclusive           text COLLATE "C",
    workdir             text,
    origin_host         text,
    extra               json NOT NULL,
    prompt              text NOT NULL,
    asking              smallint NOT NULL DEFAULT 0,     -- open questions of the job
    continues           text COLLATE "C",                -- the job whose conversation it continues
    host                text COLLATE "C" NOT NULL DEFAULT '',  -- the only host that can claim it, as it has the conversation; empty: any
    CHECK (status <> 'running' OR (due_ms IS NOT NULL AND lease_expires_at IS NOT NULL))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, vacuum_index_cleanup = on);
-- The settings: claims and ends leave old versions of rows behind, and the vacuum comes before claims feel them.

CREATE INDEX job_pending ON mam.job (label, priority DESC, number) WHERE status = 'pending' AND blocked = 0;
CREATE INDEX job_due ON mam.job (due_ms, number) WHERE due_ms IS NOT NULL AND blocked < 2;
CREATE INDEX job_open ON mam.job (number) WHERE ended_at IS NULL;
CREATE INDEX job_ended ON mam.job (coalesce(ended_at, updated_at), status)
    WHERE status IN ('completed', 'error', 'cancelled');
CREATE INDEX job_failed ON mam.job (number) WHERE status IN ('error', 'cancelled');
CREATE INDEX job_label ON mam.job (label, number);
CREATE INDEX job_set_aside ON mam.job (number) WHERE blocked = 2;
CREATE INDEX job_asking ON mam.job (number) WHERE asking > 0;
CREATE UNIQUE INDEX job_key ON mam.job (key) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX job_retry_of ON mam.job (retry_of) WHERE retry_of IS NOT NULL;
CREATE INDEX job_root ON mam.job (root) WHERE root IS NOT NULL;
CREATE INDEX job_parent ON mam.job (parent_id, number) WHERE parent_id IS NOT NULL;
CREATE INDEX job_claimant ON mam.job (claimant_agent) WHERE claimant_agent IS NOT NULL;
CREATE UNIQUE INDEX job_continues ON mam.job (continues) WHERE continues IS NOT NULL;
CREATE INDEX job_exclusive ON mam.job (exclusive, label, agent, host, priority DESC, number)
    WHERE exclusive IS NOT NULL AND status = 'pending';
-- At most one job of a key runs.
CREATE UNIQUE INDEX job_holder ON mam.job (exclusive) WHERE exclusive IS NOT NULL AND status = 'running';

-- Each change of a job: the fields that it set, and the lines of history with the events in them.
CREATE SEQUENCE mam.journal_number;
CREATE TABLE mam.journal (
    number bigint PRIMARY KEY DEFAULT nextval('mam.journal_number'),
    job    bigint NOT NULL,  -- the job's number
    job_id text NOT NULL,
    act_id text,             -- the writer made it up, and looks for it when the answer to its commit was lost
    fields json,             -- NULL: the job is gone
    lines  json NOT NULL
);
CREATE INDEX journal_job ON mam.journal (job, number);

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
-- for (7168364, its hash). `news` is status, job and label, which is empty when any waiter may have to look. Before it come how many
-- wait for the label, and the server process of one of them, which looks first.
CREATE FUNCTION mam.tell(news text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF pg_try_advisory_lock(7168365, 2) AND pg_advisory_unlock(7168365, 2) AND NOT EXISTS (SELECT FROM pg_listening_channels()) THEN
        RETURN;
    END IF;
    PERFORM pg_notify('mam_news', concat_ws(' ', count(*), coalesce((array_agg(pid ORDER BY random()))[1], 0), news)) FROM pg_locks
    WHERE locktype = 'advisory' AND classid = 7168364 AND objsubid = 2
      AND objid::bigint = hashtext(substring(news FROM '^\S* \S* (.*)$')) & 4294967295
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
END $$;

-- The clock in milliseconds: the writer's if it brings one, as tests do, else the server's. And its text, as records hold it.
CREATE FUNCTION mam.clock(given bigint) RETURNS bigint LANGUAGE sql AS
    'SELECT coalesce(given, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)';
CREATE FUNCTION mam.second(ms bigint) RETURNS text LANGUAGE sql STABLE AS
    $$SELECT to_char(to_timestamp(ms / 1000) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') COLLATE "C"$$;
CREATE FUNCTION mam.milli(ms bigint) RETURNS text LANGUAGE sql STABLE AS
    $$SELECT left(mam.second(ms), -1) || '.' || lpad((ms % 1000)::text, 3, '0') || 'Z'$$;

-- A job that depends on others has a row for each; `needs` is the root of the other one's chain of retries.
CREATE TABLE mam.dependency (
    needs  text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    job_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (needs, number)
);
CREATE INDEX dependency_job ON mam.dependency (job_id);

-- Chains of retries in which a job has ended, and up to which number their dependents are settled.
CREATE TABLE mam.unsettled (root text COLLATE "C" PRIMARY KEY, ended text NOT NULL, upto bigint NOT NULL);

CREATE TABLE mam.pause (
    agent   text COLLATE "C" NOT NULL,  -- empty: any
    label   text COLLATE "C" NOT NULL,  -- empty: any
    until   text,
    reason  text,
    made_at text NOT NULL,
    probe   text,
    PRIMARY KEY (agent, label)
);

-- Which generation of a session may claim.
CREATE TABLE mam.session_generation (
    agent_id      text COLLATE "C" PRIMARY KEY,
    generation_id text NOT NULL,
    superseded    text NOT NULL  -- a JSON array
);

CREATE TABLE mam.archive (
    job_id   text COLLATE "C" PRIMARY KEY,
    number   bigint NOT NULL,
    key      text,
    retry_of text COLLATE "C",
    root     text COLLATE "C",
    record   json NOT NULL,  -- without empty fields
    events   json NOT NULL,  -- `null`: the journal has them
    continues text COLLATE "C"
);
CREATE INDEX archive_number ON mam.archive (number);
CREATE UNIQUE INDEX archive_key ON mam.archive (key) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX archive_retry_of ON mam.archive (retry_of) WHERE retry_of IS NOT NULL;
CREATE UNIQUE INDEX archive_continues ON mam.archive (continues) WHERE continues IS NOT NULL;
CREATE INDEX archive_root ON mam.archive (root) WHERE root IS NOT NULL;

-- Secrets, which a record must not hold. A role reads its own; the owner of the table reads all.
CREATE TABLE mam.secret (
    job_id text COLLATE "C" NOT NULL,
    name   text NOT NULL,
    secret text NOT NULL,
    owner  text NOT NULL DEFAULT current_user,
    PRIMARY KEY (job_id, name)
);
ALTER TABLE mam.secret ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON mam.secret USING (owner = current_user) WITH CHECK (owner = current_user);
-- Tells a role that may not read the secrets of a job that there are some: it must not send unsigned events of a signed job.
CREATE FUNCTION mam.count_secrets(job text) RETURNS bigint LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog
    AS 'SELECT count(*) FROM mam.secret WHERE job_id = job';

-- The position of each named consumer in the journal.
CREATE TABLE mam.consumer (name text COLLATE "C" PRIMARY KEY, position text NOT NULL);

-- The directory of live sessions (mam.agents.postgres_directory).
CREATE TABLE mam.agent_record (
    agent_id         text COLLATE "C" PRIMARY KEY,
    generation_id    text NOT NULL,
    name             text NOT NULL,
    record           text NOT NULL,
    lease_expires_ms bigint NOT NULL
);
CREATE INDEX agent_record_name ON mam.agent_record (name);

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

-- Live workers (mam.jobs.workers). A worker renews its row while it lives; `asked` tells it to finish.
CREATE TABLE mam.worker (
    name  text COLLATE "C" PRIMARY KEY,
    entry text NOT NULL,  -- a JSON object
    asked text
);

-- Tokens, sessions and one-time codes of the server (mam.jobs.credential), by the digest of what a caller presents.
CREATE TABLE mam.credential (
    kind       text COLLATE "C" NOT NULL,
    name       text COLLATE "C" NOT NULL,
    digest     text COLLATE "C" NOT NULL UNIQUE,
    parent     text COLLATE "C" NOT NULL,  -- the name of the token that it belongs to
    made_ms    bigint NOT NULL,
    expires_ms bigint,
    grants     text NOT NULL,              -- a JSON object
    PRIMARY KEY (kind, name)
);
