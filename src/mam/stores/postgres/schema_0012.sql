-- What claims leave in their index is walked over by the next ones until the server's own vacuum has taken it away. It would leave
-- the indexes alone while few pages of the table have changed, and in a table of a million jobs that is thousands of claims.
ALTER TABLE job SET (vacuum_index_cleanup = on);
