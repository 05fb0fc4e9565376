"""Counts and times of all jobs, computed from the journal and kept in a cache."""
