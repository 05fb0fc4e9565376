"""Jobs in PostgreSQL, for many hosts."""
