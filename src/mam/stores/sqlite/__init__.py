"""Jobs in one SQLite file: one host, many workers."""
