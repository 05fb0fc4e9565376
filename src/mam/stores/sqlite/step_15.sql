-- From schema 14: a table of this version that it lacks. It is in schema.sql too.

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
