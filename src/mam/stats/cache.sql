-- One row for each job in the journal. Rebuilt from the journal when it does not match it.

CREATE TABLE job (
    job_id     TEXT PRIMARY KEY,
    label      TEXT NOT NULL,
    agent      TEXT NOT NULL,
    status     TEXT NOT NULL,
    since      INTEGER NOT NULL,  -- when it got that status; all times are seconds since 1970
    registered INTEGER NOT NULL,
    ended      INTEGER,
    pending    INTEGER NOT NULL DEFAULT 0,  -- seconds in that status, all of them together
    waiting    INTEGER NOT NULL DEFAULT 0,
    running    INTEGER NOT NULL DEFAULT 0,
    attempts   INTEGER NOT NULL DEFAULT 0,
    losses     INTEGER NOT NULL DEFAULT 0,
    retries    INTEGER NOT NULL DEFAULT 0,
    tokens     INTEGER NOT NULL DEFAULT 0,
    cost       REAL NOT NULL DEFAULT 0
);
CREATE INDEX by_end ON job (ended) WHERE ended IS NOT NULL;
CREATE INDEX by_registration ON job (registered);

-- What the jobs came to that ended on one day (days since 1970), of a label, of an agent and of all (mam.stats.tally).
CREATE TABLE summary (
    kind  TEXT NOT NULL,
    day   INTEGER NOT NULL,
    name  TEXT NOT NULL,
    tally TEXT NOT NULL,
    PRIMARY KEY (kind, day, name)
);

-- How far the journal has been read (mam.stores.consumer).
CREATE TABLE consumer (name TEXT PRIMARY KEY, position TEXT NOT NULL);
