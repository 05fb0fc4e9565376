-- A registry of a million ended jobs stays quick: the few that failed, and the few that nobody can read, are found without
-- walking through the others. A claim and a completion write to neither index.
CREATE INDEX job_failed ON job (number) WHERE status IN ('error', 'cancelled');
CREATE INDEX job_set_aside ON job (number) WHERE blocked = 2;
