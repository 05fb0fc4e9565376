-- A claim in one trip. `seal`: a new job as it was registered, by which a claim knows it without having seen it; NULL for
-- all others, and whatever is written later breaks it. `token`: who wrote an entry, when the answer to it was lost.
-- The last check of a row goes as the others did: the server would read it anew at every write.

ALTER TABLE job ADD COLUMN seal bigint, DROP CONSTRAINT job_check;
ALTER TABLE journal ADD COLUMN token bigint;
