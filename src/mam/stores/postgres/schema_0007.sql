-- The one job that a usage limit's pause lets through, to see whether the limit is over.
ALTER TABLE pause ADD COLUMN probe text;
