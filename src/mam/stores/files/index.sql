-- A cache of the record files, so that a claim does not read them all. Made anew from them whenever it is missing,
-- damaged or of another version. `state` is the record with a digest of its prompt: what mam knew before a foreign write.

CREATE TABLE job (
    job_id      TEXT PRIMARY KEY,
    number      INTEGER NOT NULL,
    status      TEXT NOT NULL,
    label       TEXT NOT NULL,
    agent       TEXT NOT NULL,
    priority    INTEGER NOT NULL,
    created_at  TEXT NOT NULL,
    key         TEXT,
    retry_of    TEXT,
    root        TEXT,             -- the first of a chain of retries, for those that are one
    exclusive   TEXT,
    blocked     INTEGER NOT NULL, -- 0 free, 1 held back by its exclusive key, 2 unreadable (mam.stores.sql.gate)
    due_ms      INTEGER,          -- end of the lease or of the wait, wall clock
    boot_id     TEXT,             -- of a lease: the boot whose clock decides
    boot_ms     INTEGER,
    claimant    TEXT,             -- the agent's id, while one of its sessions holds the job
    parent      TEXT,             -- the job from inside of which it was registered
    inode       INTEGER NOT NULL, -- the file as mam last saw it
    modified_ns INTEGER NOT NULL,
    size        INTEGER NOT NULL,
    bad         INTEGER NOT NULL DEFAULT 0,
    state       TEXT NOT NULL
);

CREATE INDEX by_number ON job (number);
CREATE INDEX claim ON job (label, priority DESC, number) WHERE status = 'pending' AND blocked = 0;
CREATE INDEX claim_by_agent ON job (label, agent, priority DESC, number) WHERE status = 'pending' AND blocked = 0;
CREATE INDEX by_key ON job (exclusive, label, agent, priority DESC, number)
    WHERE exclusive IS NOT NULL AND status = 'pending';
CREATE INDEX held ON job (exclusive) WHERE exclusive IS NOT NULL AND status = 'running';
CREATE INDEX chain ON job (root, number) WHERE root IS NOT NULL;
CREATE INDEX due_by_wall ON job (due_ms) WHERE due_ms IS NOT NULL AND bad = 0;
CREATE INDEX due_by_boot ON job (boot_id, boot_ms) WHERE boot_id IS NOT NULL AND bad = 0;
CREATE INDEX by_claimant ON job (claimant) WHERE claimant IS NOT NULL;
CREATE INDEX by_parent ON job (parent, number) WHERE parent IS NOT NULL;
CREATE INDEX job_key ON job (key) WHERE key IS NOT NULL;
CREATE INDEX job_retry_of ON job (retry_of) WHERE retry_of IS NOT NULL;

-- Who waits for whom, by the first job of a chain of retries; and the ends that those who wait have not been told yet.
CREATE TABLE dependency (
    needs  TEXT NOT NULL,
    number INTEGER NOT NULL,
    job_id TEXT NOT NULL,
    PRIMARY KEY (needs, number)
) WITHOUT ROWID;
CREATE INDEX dependent ON dependency (job_id);

CREATE TABLE unsettled (
    root  TEXT PRIMARY KEY,
    ended TEXT NOT NULL,
    upto  INTEGER NOT NULL
) WITHOUT ROWID;

-- Files that mam could not read or did not take over as they are, for the eyes of a person.
CREATE TABLE problem (
    file        TEXT PRIMARY KEY,
    problem     TEXT NOT NULL,
    inode       INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    size        INTEGER NOT NULL
);

-- One row: how far the journal has been applied, and what the directory looked like then.
CREATE TABLE applied (
    one          INTEGER PRIMARY KEY CHECK (one = 1),
    journal_id   TEXT NOT NULL,
    first        INTEGER NOT NULL,
    byte         INTEGER NOT NULL,
    next_entry   INTEGER NOT NULL,
    next_number  INTEGER NOT NULL,
    directory_ns INTEGER NOT NULL
);
