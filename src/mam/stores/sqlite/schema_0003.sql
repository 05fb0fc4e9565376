-- The generation of each session that counts here, and those that it and its predecessors have replaced; and which
-- session holds a running job.

CREATE TABLE session_generation (
    agent_id      TEXT PRIMARY KEY,
    generation_id TEXT NOT NULL,
    superseded    TEXT NOT NULL  -- a JSON array, the oldest first
) STRICT, WITHOUT ROWID;

ALTER TABLE job ADD COLUMN claimant_agent TEXT;
CREATE INDEX job_claimant ON job (claimant_agent) WHERE claimant_agent IS NOT NULL AND status = 'running';
