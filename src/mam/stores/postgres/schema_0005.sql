-- Who was registered from inside whom; and how far each broker has been sent the journal, for relays on any host.

ALTER TABLE job ADD COLUMN parent text COLLATE "C";
UPDATE job SET parent = record::json ->> 'parent_id' WHERE record::json ->> 'parent_id' IS NOT NULL;
CREATE INDEX job_parent ON job (parent, number) WHERE parent IS NOT NULL;

CREATE TABLE relay (
    broker text COLLATE "C" PRIMARY KEY,
    sent   text NOT NULL
);
