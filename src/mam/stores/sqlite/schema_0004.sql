-- Ended jobs that nobody works on any more, out of the way of the others; each is one row, with all that was told of it.
CREATE TABLE archive (
    job_id   TEXT PRIMARY KEY,
    number   INTEGER NOT NULL UNIQUE,
    key      TEXT,
    retry_of TEXT,
    root     TEXT,
    record   TEXT NOT NULL,
    prompt   TEXT NOT NULL,
    events   TEXT NOT NULL
) STRICT;
CREATE INDEX archive_key ON archive (key) WHERE key IS NOT NULL;
CREATE INDEX archive_retry_of ON archive (retry_of) WHERE retry_of IS NOT NULL;
CREATE INDEX archive_chain ON archive (root, number) WHERE root IS NOT NULL;
