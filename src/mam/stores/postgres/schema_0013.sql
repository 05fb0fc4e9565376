-- How often something has come to the front of a line, or begun to stand before all of them. Whoever knows how often that was
-- when it looked where a line begins need not walk there again (mam.stores.postgres.line). The row is written anew each time.
ALTER TABLE store ADD COLUMN moves bigint NOT NULL DEFAULT 0, SET (fillfactor = 10);

-- A program of an older version that has the database open would not count. What it writes is refused: it knows these by other names.
ALTER TABLE journal RENAME COLUMN lines TO said;
ALTER TABLE pause RENAME COLUMN made_at TO since;
