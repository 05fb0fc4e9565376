"""The job: what it is, what may happen to it. Pure: no files, no clocks, no chance."""
