-- The generation of each session that counts here, and those that it and its predecessors have replaced; and which
-- session holds a running job.

CREATE TABLE session_generation (
    agent_id      text COLLATE "C" PRIMARY KEY,
    generation_id text NOT NULL,
    superseded    text NOT NULL  -- a JSON array, the oldest first
);

ALTER TABLE job ADD COLUMN claimant_agent text COLLATE "C";
CREATE INDEX job_claimant ON job (claimant_agent) WHERE claimant_agent IS NOT NULL AND status = 'running';
