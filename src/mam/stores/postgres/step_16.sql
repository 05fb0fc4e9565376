-- From schema 15: tables of this version that it lacks. Each is in schema.sql too.

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

-- Secrets: each role reads its own.
ALTER TABLE mam.secret ADD COLUMN owner text NOT NULL DEFAULT current_user;
ALTER TABLE mam.secret ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON mam.secret USING (owner = current_user) WITH CHECK (owner = current_user);
-- Tells a role that may not read the secrets of a job that there are some: it must not send unsigned events of a signed job.
CREATE FUNCTION mam.count_secrets(job text) RETURNS bigint LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog
    AS 'SELECT count(*) FROM mam.secret WHERE job_id = job';
