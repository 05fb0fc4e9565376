-- From schema 14 (mam 0.1.0). Its tables step aside with everything that belongs to them, and are dropped at the end. What mam reads
-- with Python in between (jobs, archive) is in upgrade.py.

-- name: rename old tables
DO $$
DECLARE old text; own record;
BEGIN
    DROP VIEW mam.told;
    FOREACH old IN ARRAY ARRAY['store', 'job', 'rare', 'numbered', 'journal', 'event', 'dependency', 'unsettled', 'pause', 'secret',
                               'agent_record', 'session_generation', 'archive', 'relay'] LOOP
        FOR own IN SELECT relname FROM pg_class JOIN pg_index ON indexrelid = pg_class.oid
                   WHERE indrelid = format('mam.%I', old)::regclass LOOP
            EXECUTE format('ALTER INDEX mam.%I RENAME TO %I', own.relname, 'v14_' || own.relname);
        END LOOP;
        EXECUTE format('ALTER TABLE mam.%I RENAME TO %I', old, 'v14_' || old);
    END LOOP;
    ALTER SEQUENCE mam.job_number RENAME TO v14_job_number;
END $$

-- name: old jobs
SELECT job.number, record, prompt, job.root, awaited, blocked = 2
FROM mam.v14_numbered AS numbered JOIN mam.v14_job AS job USING (job_id)
WHERE numbered.number > %(after)s ORDER BY numbered.number LIMIT %(limit)s

-- name: old archive
SELECT number, record, prompt, events, root FROM mam.v14_archive WHERE number > %(after)s ORDER BY number LIMIT %(limit)s

-- name: copy journal
-- In its order, which was that of transactions.
INSERT INTO mam.journal (number, job, job_id, fields, lines)
SELECT row_number() OVER (ORDER BY xact, journal.number), coalesce(job.number, archive.number, 0), journal.job_id, fields::json, said::json
FROM mam.v14_journal AS journal
LEFT JOIN mam.v14_job AS job ON job.job_id = journal.job_id
LEFT JOIN mam.v14_archive AS archive ON archive.job_id = journal.job_id

-- name: copy other tables
DO $$
BEGIN
    INSERT INTO mam.dependency SELECT needs, number, job_id FROM mam.v14_dependency;
    INSERT INTO mam.unsettled SELECT root, ended, upto FROM mam.v14_unsettled;
    INSERT INTO mam.pause SELECT agent, label, until, reason, since, probe FROM mam.v14_pause;
    INSERT INTO mam.session_generation SELECT agent_id, generation_id, superseded FROM mam.v14_session_generation;
    INSERT INTO mam.secret SELECT job_id, name, secret FROM mam.v14_secret;
    INSERT INTO mam.agent_record SELECT agent_id, generation_id, name, record, lease_expires_ms FROM mam.v14_agent_record;
    PERFORM setval('mam.job_number', last_value, is_called) FROM mam.v14_job_number;
    PERFORM setval('mam.journal_number', max(number)) FROM mam.journal;
    DROP TABLE mam.v14_store, mam.v14_job, mam.v14_rare, mam.v14_numbered, mam.v14_journal, mam.v14_event, mam.v14_dependency,
        mam.v14_unsettled, mam.v14_pause, mam.v14_secret, mam.v14_agent_record, mam.v14_session_generation, mam.v14_archive,
        mam.v14_relay;
    DROP SEQUENCE mam.v14_job_number;
END $$

-- name: pending keys
SELECT DISTINCT exclusive FROM mam.job WHERE exclusive IS NOT NULL AND status = 'pending'
