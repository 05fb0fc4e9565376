-- The first schema. `record` is the whole record but its prompt, which is written once and read only when asked for.

CREATE TABLE job (
    job_id     TEXT PRIMARY KEY,
    number     INTEGER NOT NULL,
    status     TEXT NOT NULL
               CHECK (status IN ('pending', 'waiting', 'running', 'completed', 'error', 'cancelled')),
    label      TEXT NOT NULL,
    priority   INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    key        TEXT,
    retry_of   TEXT,
    due_ms     INTEGER,  -- end of the lease or of the wait, wall clock
    boot_id    TEXT,     -- of a lease: the boot whose clock decides
    boot_ms    INTEGER,
    record     TEXT NOT NULL,
    CHECK (status <> 'running' OR due_ms IS NOT NULL)
) STRICT;

CREATE UNIQUE INDEX job_number ON job (number);
CREATE UNIQUE INDEX job_key ON job (key) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX job_retry_of ON job (retry_of) WHERE retry_of IS NOT NULL;
CREATE INDEX job_claim ON job (label, priority DESC, number) WHERE status = 'pending';
CREATE INDEX job_due_by_wall ON job (due_ms) WHERE due_ms IS NOT NULL;
CREATE INDEX job_due_by_boot ON job (boot_id, boot_ms) WHERE boot_id IS NOT NULL;

CREATE TABLE prompt (
    job_id TEXT PRIMARY KEY REFERENCES job (job_id) ON DELETE CASCADE,
    prompt TEXT NOT NULL
) STRICT;

-- The journal: one row for each change of one job, in the order of the commits.
CREATE TABLE journal (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id TEXT NOT NULL,
    fields TEXT,
    lines  TEXT NOT NULL
) STRICT;

-- What is told about a job: payloads and markers, by the first sequence number they stand for.
CREATE TABLE event (
    job_id TEXT NOT NULL,
    seq    INTEGER NOT NULL,
    event  TEXT NOT NULL,
    PRIMARY KEY (job_id, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE store (
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    journal_id TEXT NOT NULL
) STRICT;
