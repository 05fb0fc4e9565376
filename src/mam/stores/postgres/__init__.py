"""Jobs in PostgreSQL: many hosts. Growing past one machine is left to an engine that is made for it."""
