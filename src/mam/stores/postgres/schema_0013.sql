-- How often something has come to the front of a line, or begun to stand before all of them. Whoever knows how often that was
-- when it looked where a line begins need not walk there again (mam.stores.postgres.line). The row is written anew each time.
ALTER TABLE store ADD COLUMN moves bigint NOT NULL DEFAULT 0, SET (fillfactor = 10);
