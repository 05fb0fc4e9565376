-- From schema 16: a table of this version that it lacks. It is in schema.sql too.

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
