"""How the work goes: counts and times of all jobs, folded from the journal and kept in a cache."""
