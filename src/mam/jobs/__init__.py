"""The job and the rules for its changes. Pure: no files, no clocks, no randomness."""
