-- Ended jobs that nobody works on any more, out of the way of the others; each is one row, with all that was told of it.
CREATE TABLE archive (
    job_id   text COLLATE "C" PRIMARY KEY,
    number   bigint NOT NULL UNIQUE,
    key      text,
    retry_of text COLLATE "C",
    root     text COLLATE "C",
    record   text NOT NULL,
    prompt   text NOT NULL,
    events   text NOT NULL
);
CREATE INDEX archive_key ON archive (key) WHERE key IS NOT NULL;
CREATE INDEX archive_retry_of ON archive (retry_of) WHERE retry_of IS NOT NULL;
CREATE INDEX archive_chain ON archive (root, number) WHERE root IS NOT NULL;
