-- The first schema. Everything lives in one schema of the database, which is the search path of every connection.
-- `record` is the whole record but its prompt, which is written once and read only when asked for.

CREATE SEQUENCE job_number;

CREATE TABLE job (
    job_id     text COLLATE "C" PRIMARY KEY,
    number     bigint NOT NULL UNIQUE,
    status     text NOT NULL
               CHECK (status IN ('pending', 'waiting', 'running', 'completed', 'error', 'cancelled')),
    label      text NOT NULL,
    priority   integer NOT NULL,
    created_at text COLLATE "C" NOT NULL,
    key        text UNIQUE,
    retry_of   text UNIQUE,
    due_ms     bigint,  -- end of the lease or of the wait
    boot_id    text,    -- only when a clock was passed in, as tests do: PostgreSQL's own time decides otherwise
    boot_ms    bigint,
    prompt     text NOT NULL,
    record     text NOT NULL,
    CHECK (status <> 'running' OR due_ms IS NOT NULL)
);

-- Only pending jobs are in it, so that it stays small however many have ended; `number` is ordered by no other index
-- together with `priority`, so that the planner has no other way to walk.
CREATE INDEX job_claim ON job (label, priority DESC, number) WHERE status = 'pending';
CREATE INDEX job_due_by_wall ON job (due_ms) WHERE due_ms IS NOT NULL;
CREATE INDEX job_due_by_boot ON job (boot_id, boot_ms) WHERE boot_id IS NOT NULL;
-- Claimed rows leave their old versions behind; these settings clear them away before claims feel them.
ALTER TABLE job SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, fillfactor = 80);

-- The journal: one row for each change of one job. `xact` is the transaction that wrote it: numbers are given out before
-- commits, so only transactions older than every one still running may be read past.
CREATE TABLE journal (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    xact   xid8 NOT NULL DEFAULT pg_current_xact_id(),
    job_id text NOT NULL,
    fields text,
    lines  text NOT NULL
);
CREATE INDEX journal_order ON journal (xact, number);

-- What is told about a job: payloads and markers, by the first sequence number they stand for.
CREATE TABLE event (
    job_id text COLLATE "C" NOT NULL,
    seq    bigint NOT NULL,
    event  text NOT NULL,
    PRIMARY KEY (job_id, seq)
);

CREATE TABLE store (
    one        integer PRIMARY KEY CHECK (one = 1),
    version    integer NOT NULL,
    journal_id text NOT NULL
);
