-- One registry in one file. Fields that mam queries, orders by, fences or shows have columns; `extra` holds the other fields of
-- a record as JSON. Types and checks keep a row that another program edits readable.

CREATE TABLE store (
    one           INTEGER PRIMARY KEY CHECK (one = 1),
    epoch         TEXT NOT NULL,                -- names this journal: a new one after a rebuild
    boot_id       TEXT NOT NULL DEFAULT '',     -- the boot whose clock the leases are compared with
    mirrored_upto INTEGER NOT NULL DEFAULT 0,   -- files store: the record files show the journal up to here
    summarised_upto INTEGER NOT NULL DEFAULT 0  -- before it, the entries of archived jobs are summarised
) STRICT;

CREATE TABLE job (
    number              INTEGER PRIMARY KEY,
    job_id              TEXT NOT NULL UNIQUE,
    version             INTEGER NOT NULL DEFAULT 1,
    status              TEXT NOT NULL
                        CHECK (status = 'pending' OR status = 'waiting' OR status = 'running'  -- IN would build a table at each write
                               OR status = 'completed' OR status = 'error' OR status = 'cancelled'),
    label               TEXT NOT NULL,
    agent               TEXT NOT NULL,
    priority            INTEGER NOT NULL,
    blocked             INTEGER NOT NULL DEFAULT 0,  -- 1: a job ahead of it has the same exclusive key; 2: mam cannot read it
    awaited             INTEGER NOT NULL DEFAULT 0,  -- 1: other jobs depend on it
    created_at          TEXT NOT NULL,
    updated_at          TEXT NOT NULL,
    claimed_at          TEXT,
    heard_at            TEXT,
    ended_at            TEXT,
    attempt             INTEGER NOT NULL CHECK (attempt >= 0),
    claim_id            TEXT,
    owner               TEXT,
    supervised          INTEGER NOT NULL CHECK (supervised = 0 OR supervised = 1),
    claimant_agent      TEXT,
    claimant_generation TEXT,
    lease_expires_at    TEXT,
    lease_seconds       REAL,
    lease_boot_id       TEXT,
    lease_boot_ms       INTEGER,
    waiting_for         TEXT,
    due_at              TEXT,
    due_boot            TEXT NOT NULL DEFAULT '',    -- the boot whose clock `due_ms` is on; empty: the wall clock
    due_ms              INTEGER,                     -- when the lease or the wait ends
    ended_attempt       INTEGER,
    losses              INTEGER NOT NULL CHECK (losses >= 0),
    max_losses          INTEGER NOT NULL,
    retries             INTEGER NOT NULL CHECK (retries >= 0),
    max_retries         INTEGER NOT NULL,
    timeout_sec         INTEGER NOT NULL CHECK (timeout_sec BETWEEN 0 AND 2147483647),
    idle_timeout_sec    INTEGER NOT NULL CHECK (idle_timeout_sec BETWEEN 0 AND 2147483647),
    last_seq            INTEGER NOT NULL CHECK (last_seq >= 0),
    reason              TEXT,
    result              TEXT,
    checked             INTEGER CHECK (checked = 0 OR checked = 1),
    expected_artifacts  TEXT NOT NULL CHECK (json_type(expected_artifacts) = 'array'),
    said                TEXT CHECK (json_type(said) = 'object'),
    checks              TEXT CHECK (json_type(checks) = 'object'),
    run                 TEXT CHECK (json_type(run) = 'object'),
    key                 TEXT,
    retry_of            TEXT,
    root                TEXT,                        -- the first job of its chain of retries, if it retries one
    parent_id           TEXT,
    exclusive           TEXT,
    workdir             TEXT,
    origin_host         TEXT,
    extra               TEXT NOT NULL CHECK (json_type(extra) = 'object'),
    asking              INTEGER NOT NULL DEFAULT 0,  -- open questions of the job
    continues           TEXT,                        -- the job whose conversation it continues
    host                TEXT NOT NULL DEFAULT '',    -- the only host that can claim it, as it has the conversation; empty: any
    CHECK (status <> 'running' OR (due_ms IS NOT NULL AND lease_expires_at IS NOT NULL))
) STRICT;

-- The prompt is written once and read seldom; beside the row, a heartbeat does not write it again.
CREATE TABLE prompt (
    number INTEGER PRIMARY KEY REFERENCES job (number) ON DELETE CASCADE,
    prompt TEXT NOT NULL
) STRICT;

CREATE INDEX job_pending ON job (label, priority DESC, number, agent) WHERE status = 'pending' AND blocked = 0;
CREATE INDEX job_due ON job (due_boot, due_ms) WHERE due_ms IS NOT NULL AND blocked < 2;
CREATE INDEX job_set_aside ON job (number) WHERE blocked = 2;
CREATE INDEX job_open ON job (number) WHERE status = 'pending' OR status = 'waiting' OR status = 'running';
CREATE INDEX job_ended ON job (coalesce(ended_at, updated_at), status)
    WHERE status = 'completed' OR status = 'error' OR status = 'cancelled';
CREATE INDEX job_failed ON job (number) WHERE status = 'error' OR status = 'cancelled';
CREATE INDEX job_label ON job (label, number);
CREATE INDEX job_asking ON job (number) WHERE asking > 0;
CREATE UNIQUE INDEX job_key ON job (key) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX job_retry_of ON job (retry_of) WHERE retry_of IS NOT NULL;
CREATE INDEX job_root ON job (root) WHERE root IS NOT NULL;
CREATE INDEX job_parent ON job (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX job_claimant ON job (claimant_agent) WHERE claimant_agent IS NOT NULL;
CREATE UNIQUE INDEX job_continues ON job (continues) WHERE continues IS NOT NULL;
CREATE INDEX job_exclusive ON job (exclusive, label, agent, host, priority DESC, number) WHERE exclusive IS NOT NULL AND status = 'pending';
-- At most one job of a key runs.
CREATE UNIQUE INDEX job_holder ON job (exclusive) WHERE exclusive IS NOT NULL AND status = 'running';

-- Each change of a job: the fields that it set, and the lines of history with the events in them.
CREATE TABLE journal (
    number INTEGER PRIMARY KEY,
    job    INTEGER NOT NULL,  -- the job's number
    job_id TEXT NOT NULL,
    fields TEXT,              -- NULL: the job is gone
    lines  TEXT NOT NULL
) STRICT;
CREATE INDEX journal_job ON journal (job, number);

-- A job that depends on others has a row for each; `needs` is the root of the other one's chain of retries.
CREATE TABLE dependency (
    needs  TEXT NOT NULL,
    number INTEGER NOT NULL,
    job_id TEXT NOT NULL,
    PRIMARY KEY (needs, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX dependency_job ON dependency (job_id);

-- Chains of retries in which a job has ended, and up to which number their dependents are settled.
CREATE TABLE unsettled (root TEXT PRIMARY KEY, ended TEXT NOT NULL, upto INTEGER NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE pause (
    agent   TEXT NOT NULL,  -- empty: any
    label   TEXT NOT NULL,  -- empty: any
    until   TEXT,
    reason  TEXT,
    made_at TEXT NOT NULL,
    probe   TEXT,
    PRIMARY KEY (agent, label)
) STRICT, WITHOUT ROWID;

-- Which generation of a session may claim.
CREATE TABLE session_generation (
    agent_id      TEXT PRIMARY KEY,
    generation_id TEXT NOT NULL,
    superseded    TEXT NOT NULL  -- a JSON array
) STRICT, WITHOUT ROWID;

CREATE TABLE archive (
    job_id   TEXT PRIMARY KEY,
    number   INTEGER NOT NULL,
    key      TEXT,
    retry_of TEXT,
    root     TEXT,
    record   TEXT NOT NULL,  -- without empty fields
    events   TEXT NOT NULL,  -- `null`: the journal has them
    continues TEXT
) STRICT;
CREATE INDEX archive_number ON archive (number);
CREATE UNIQUE INDEX archive_key ON archive (key) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX archive_retry_of ON archive (retry_of) WHERE retry_of IS NOT NULL;
CREATE UNIQUE INDEX archive_continues ON archive (continues) WHERE continues IS NOT NULL;
CREATE INDEX archive_root ON archive (root) WHERE root IS NOT NULL;

-- The position of each named consumer in the journal.
CREATE TABLE consumer (name TEXT PRIMARY KEY, position TEXT NOT NULL) STRICT, WITHOUT ROWID;

-- Live workers (mam.jobs.workers). A worker renews its row while it lives; `asked` tells it to finish.
CREATE TABLE worker (
    name  TEXT PRIMARY KEY,
    entry TEXT NOT NULL,  -- a JSON object
    asked TEXT
) STRICT, WITHOUT ROWID;

-- Tokens, sessions and one-time codes of the server (mam.jobs.credential), by the digest of what a caller presents.
CREATE TABLE credential (
    kind       TEXT NOT NULL,
    name       TEXT NOT NULL,
    digest     TEXT NOT NULL UNIQUE,
    parent     TEXT NOT NULL,     -- the name of the token that it belongs to
    made_ms    INTEGER NOT NULL,
    expires_ms INTEGER,
    grants     TEXT NOT NULL,     -- a JSON object
    PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;
