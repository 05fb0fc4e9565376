-- The queries that both databases run, as SQLite understands them; the PostgreSQL store translates parameters (`:name`), lists
-- (`json_each`) and the choice of an index (mam.stores.postgres.client). `{schema}` is the schema of the tables, `{jobs}` the table or
-- join that has the columns of a job, `{prompt}` its second part, `{columns}` those columns; `{names}`, `{values}` and `{set}` write
-- them. `{open}`, `{ended}` and `{failed}` are conditions of indexes, `{lock}` and `{skip locked}` lock the rows of a transaction.
-- INDEXED BY: a planner that has statistics may otherwise walk through the whole table.

-- name: job
SELECT {columns} FROM {jobs} WHERE job_id = :job_id

-- name: job by key
SELECT {columns} FROM {jobs} WHERE key = :value

-- name: job by retry_of
SELECT {columns} FROM {jobs} WHERE retry_of = :value

-- name: job by continues
SELECT {columns} FROM {jobs} WHERE continues = :value

-- name: is taken
SELECT 1 FROM {schema}.job WHERE job_id = :job_id UNION ALL SELECT 1 FROM {schema}.archive WHERE job_id = :job_id

-- name: insert job
INSERT INTO {schema}.job ({names}) VALUES ({values})

-- name: update job
UPDATE {schema}.job SET version = version + 1, {set} WHERE number = :number AND version = :version

-- name: update queue order
UPDATE {schema}.job SET label = :label, agent = :agent, priority = :priority WHERE number = :number

-- name: lines of job
SELECT lines FROM {schema}.journal
WHERE job = (SELECT number FROM {schema}.job WHERE job_id = :job_id) AND job_id = :job_id ORDER BY number

-- name: last entry
SELECT coalesce(max(number), 0) FROM {schema}.journal

-- name: entries
SELECT number, job_id, fields, lines FROM {schema}.journal WHERE number > :after AND number <= :upto ORDER BY number LIMIT :limit

-- name: position
SELECT position FROM {schema}.consumer WHERE name = :name

-- name: save position
INSERT INTO {schema}.consumer (name, position) VALUES (:name, :position)
ON CONFLICT (name) DO UPDATE SET position = excluded.position

-- name: ids with prefix
SELECT job_id FROM {schema}.job WHERE job_id >= :prefix AND job_id < :behind ORDER BY job_id LIMIT :limit

-- name: root
-- Of the chain of retries that a job belongs to; the job itself if it retries none.
SELECT coalesce((SELECT root FROM {schema}.job WHERE job_id = :job_id),
                (SELECT root FROM {schema}.archive WHERE job_id = :job_id), :job_id)

-- name: newest
SELECT job_id FROM (
    SELECT job_id, number FROM {schema}.job WHERE root = :root
    UNION ALL SELECT job_id, number FROM {schema}.job WHERE job_id = :root
    UNION ALL SELECT job_id, number FROM {schema}.archive WHERE root = :root
    UNION ALL SELECT job_id, number FROM {schema}.archive WHERE job_id = :root
) AS chain ORDER BY number DESC LIMIT 1

-- name: holder
SELECT job_id FROM {schema}.job WHERE exclusive = :key AND status = 'running'

-- name: block key
UPDATE {schema}.job SET blocked = 1 WHERE exclusive = :key AND status = 'pending' AND blocked = 0

-- name: insert dependency
INSERT INTO {schema}.dependency (needs, number, job_id)
VALUES (coalesce((SELECT root FROM {schema}.job WHERE job_id = :needs),
                 (SELECT root FROM {schema}.archive WHERE job_id = :needs), :needs), :number, :job_id)
ON CONFLICT DO NOTHING

-- name: is awaited
SELECT 1 FROM {schema}.dependency WHERE needs = :root LIMIT 1

-- name: delete dependencies
DELETE FROM {schema}.dependency WHERE job_id = :job_id

-- name: mark unsettled
INSERT INTO {schema}.unsettled (root, ended, upto)
SELECT needs, :job_id, 0 FROM {schema}.dependency WHERE needs = coalesce(:root, :job_id) LIMIT 1
ON CONFLICT (root) DO UPDATE SET ended = excluded.ended, upto = 0

-- name: next unsettled
SELECT root, ended, upto FROM {schema}.unsettled ORDER BY root LIMIT 1

-- name: dependents
SELECT number, job_id FROM {schema}.dependency WHERE needs = :root AND number > :upto ORDER BY number LIMIT :limit

-- name: save settled upto
UPDATE {schema}.unsettled SET upto = :upto WHERE root = :root AND ended = :ended

-- name: delete unsettled
DELETE FROM {schema}.unsettled WHERE root = :root AND ended = :ended

-- name: pauses
SELECT agent, label, until, reason, made_at, probe FROM {schema}.pause ORDER BY agent, label

-- name: pause
INSERT INTO {schema}.pause (agent, label, until, reason, made_at, probe)
VALUES (:agent, :label, :until, :reason, :made_at, :probe)
ON CONFLICT (agent, label) DO UPDATE
SET until = excluded.until, reason = excluded.reason, made_at = excluded.made_at, probe = excluded.probe

-- name: resume
DELETE FROM {schema}.pause WHERE agent = :agent AND label = :label RETURNING 1

-- name: workers
SELECT entry, asked FROM {schema}.worker

-- name: note worker
INSERT INTO {schema}.worker (name, entry) VALUES (:name, :entry)
ON CONFLICT (name) DO UPDATE SET entry = excluded.entry RETURNING asked

-- name: ask worker
-- A worker that has to stop does not go back to finishing its jobs.
UPDATE {schema}.worker SET asked = CASE WHEN asked = 'stop' THEN asked ELSE :what END WHERE name = :name RETURNING 1

-- name: forget worker
DELETE FROM {schema}.worker WHERE name = :name

-- name: keep credential
-- Only below a token that exists; a repeat after a lost answer changes nothing.
INSERT INTO {schema}.credential (kind, name, digest, parent, made_ms, expires_ms, grants)
SELECT :kind, :name, :digest, :parent, :made_ms, :expires_ms, :grants
WHERE :kind = 'token' OR EXISTS (SELECT 1 FROM {schema}.credential WHERE kind = 'token' AND name = :parent)
ON CONFLICT (kind, name) DO UPDATE SET digest = excluded.digest WHERE credential.digest = excluded.digest RETURNING 1

-- name: drop expired credentials
DELETE FROM {schema}.credential WHERE expires_ms <= :now_ms

-- name: drop orphaned credentials
DELETE FROM {schema}.credential
WHERE kind <> 'token' AND parent NOT IN (SELECT name FROM {schema}.credential WHERE kind = 'token')

-- name: credential
SELECT kind, name, digest, parent, made_ms, expires_ms, grants FROM {schema}.credential WHERE digest = :digest

-- name: credentials
SELECT kind, name, digest, parent, made_ms, expires_ms, grants FROM {schema}.credential WHERE kind = :kind ORDER BY name

-- name: take credential
DELETE FROM {schema}.credential WHERE digest = :digest
RETURNING kind, name, digest, parent, made_ms, expires_ms, grants

-- name: drop credential
DELETE FROM {schema}.credential WHERE kind = :kind AND name = :name RETURNING 1

-- name: generations
SELECT agent_id, generation_id, superseded FROM {schema}.session_generation

-- name: generation
SELECT generation_id, superseded FROM {schema}.session_generation WHERE agent_id = :agent_id

-- name: save generation
INSERT INTO {schema}.session_generation (agent_id, generation_id, superseded)
VALUES (:agent_id, :generation_id, :superseded)
ON CONFLICT (agent_id) DO UPDATE SET generation_id = excluded.generation_id, superseded = excluded.superseded

-- name: delete job
DELETE FROM {schema}.job WHERE job_id = :job_id

-- name: archived
SELECT record, events FROM {schema}.archive WHERE job_id = :job_id

-- name: archived by key
SELECT record FROM {schema}.archive WHERE key = :value

-- name: archived by retry_of
SELECT record FROM {schema}.archive WHERE retry_of = :value

-- name: archived by continues
SELECT record FROM {schema}.archive WHERE continues = :value

-- name: archived with prefix
SELECT job_id FROM {schema}.archive WHERE job_id >= :prefix AND job_id < :behind ORDER BY job_id LIMIT :limit

-- name: archive contents
SELECT number, record, events FROM {schema}.archive WHERE number > :last ORDER BY number LIMIT :limit

-- name: archive newest first
SELECT number, record, events FROM {schema}.archive WHERE number < :last ORDER BY number DESC LIMIT :limit

-- name: mark unreadable
UPDATE {schema}.job SET blocked = 2 WHERE number = :number AND blocked < 2

-- name: mark readable
UPDATE {schema}.job SET blocked = 0 WHERE number = :number AND blocked = 2

-- name: replace entry
UPDATE {schema}.journal SET fields = :fields, lines = :lines WHERE number = :number

-- name: summarised upto
SELECT summarised_upto FROM {schema}.store

-- name: save summarised
UPDATE {schema}.store SET summarised_upto = :below WHERE summarised_upto < :below

-- name: consumers
SELECT name, position FROM {schema}.consumer ORDER BY name

-- name: unsummarised
SELECT archive.job_id FROM {schema}.archive JOIN {schema}.journal ON journal.job = archive.number
WHERE journal.number < :below AND fields IS NOT NULL GROUP BY archive.job_id HAVING count(*) > 1

-- name: lines of archived
SELECT lines FROM {schema}.journal WHERE job = :number AND job_id = :job_id ORDER BY number

-- name: job to change
SELECT {columns} FROM {jobs} WHERE job_id = :job_id {lock}

-- name: jobs to change
SELECT {columns} FROM {jobs} WHERE job_id IN (SELECT value FROM json_each(:job_ids)) ORDER BY number {lock}

-- name: first pending
SELECT {columns} FROM {schema}.job INDEXED BY job_pending {prompt}
WHERE label = :label AND status = 'pending' AND blocked = 0 AND host IN ('', :host)
  AND agent NOT IN (SELECT value FROM json_each(:skipped))
  AND (exclusive IS NULL
       OR NOT EXISTS (SELECT 1 FROM {schema}.job AS other WHERE other.exclusive = job.exclusive AND other.status = 'running'))
ORDER BY priority DESC, number LIMIT 1 {skip locked}

-- name: this pending
SELECT {columns} FROM {jobs}
WHERE job_id = :job_id AND label = :label AND status = 'pending' AND blocked < 2 AND host IN ('', :host)
  AND agent NOT IN (SELECT value FROM json_each(:skipped))
  AND (exclusive IS NULL
       OR NOT EXISTS (SELECT 1 FROM {schema}.job AS other WHERE other.exclusive = job.exclusive AND other.status = 'running'))
{skip locked}

-- name: children
SELECT job_id FROM {schema}.job INDEXED BY job_parent WHERE parent_id = :parent ORDER BY number

-- name: select
SELECT {columns} FROM {jobs}
WHERE number < :below AND (cast(:since AS text) IS NULL OR created_at >= :since) AND status IN (SELECT value FROM json_each(:statuses))
ORDER BY number DESC LIMIT :limit

-- name: select label
SELECT {columns} FROM {schema}.job INDEXED BY job_label {prompt}
WHERE label = :label AND number < :below AND (cast(:since AS text) IS NULL OR created_at >= :since)
  AND status IN (SELECT value FROM json_each(:statuses))
ORDER BY number DESC LIMIT :limit

-- name: select failed
SELECT {columns} FROM {schema}.job INDEXED BY job_failed {prompt}
WHERE {failed} AND number < :below AND (cast(:label AS text) IS NULL OR label = :label)
  AND (cast(:since AS text) IS NULL OR created_at >= :since) AND status IN (SELECT value FROM json_each(:statuses))
ORDER BY number DESC LIMIT :limit

-- name: select open
SELECT {columns} FROM {schema}.job INDEXED BY job_open {prompt}
WHERE {open} AND number < :below AND (cast(:label AS text) IS NULL OR label = :label)
  AND (cast(:since AS text) IS NULL OR created_at >= :since) AND status IN (SELECT value FROM json_each(:statuses))
ORDER BY number DESC LIMIT :limit

-- name: select asking
SELECT {columns} FROM {schema}.job INDEXED BY job_asking {prompt}
WHERE asking > 0 AND number < :below AND (cast(:label AS text) IS NULL OR label = :label)
  AND (cast(:since AS text) IS NULL OR created_at >= :since) AND status IN (SELECT value FROM json_each(:statuses))
ORDER BY number DESC LIMIT :limit

-- name: queue
SELECT job_id, label, agent, priority, number FROM {schema}.job INDEXED BY job_open
WHERE {open} AND status = 'pending' AND (cast(:label AS text) IS NULL OR label = :label)
  AND (cast(:since AS text) IS NULL OR created_at >= :since)
ORDER BY number

-- name: counts
-- By the two indexes, which are small: the table itself is not.
SELECT status, count(*) FROM {schema}.job INDEXED BY job_ended WHERE {ended} GROUP BY status
UNION ALL
SELECT status, count(*) FROM {schema}.job INDEXED BY job_open WHERE {open} GROUP BY status

-- name: ended before
SELECT status, count(*) FROM {schema}.job INDEXED BY job_ended
WHERE {ended} AND coalesce(ended_at, updated_at) < :before GROUP BY status

-- name: count ahead
SELECT count(*) FROM (
    SELECT priority, number FROM {schema}.job INDEXED BY job_pending
    WHERE label = :label AND status = 'pending' AND blocked = 0
    UNION ALL
    SELECT priority, number FROM {schema}.job INDEXED BY job_exclusive
    WHERE exclusive IS NOT NULL AND status = 'pending' AND blocked = 1 AND label = :label
) AS pending WHERE priority > :priority OR (priority = :priority AND number < :number)

-- name: mark all unsettled
INSERT INTO {schema}.unsettled (root, ended, upto) SELECT DISTINCT needs, '', 0 FROM {schema}.dependency WHERE true
ON CONFLICT DO NOTHING

-- name: jobs held by session
SELECT job_id FROM {schema}.job INDEXED BY job_claimant
WHERE claimant_agent = :agent_id AND status = 'running' AND blocked < 2 ORDER BY number

-- name: unreadable jobs
SELECT {columns} FROM {schema}.job INDEXED BY job_set_aside {prompt} WHERE blocked = 2 ORDER BY number

-- name: archivable
-- The newest job stays: its number is the one to count on from.
SELECT job_id FROM {schema}.job
WHERE job_id IN (SELECT value FROM json_each(:job_ids)) AND {ended} AND number < (SELECT max(number) FROM {schema}.job)
ORDER BY number {lock}

-- name: insert archived
INSERT INTO {schema}.archive (job_id, number, key, retry_of, continues, root, record, events)
VALUES (:job_id, :number, :key, :retry_of, :continues, :root, :record, :events)
ON CONFLICT (job_id) DO UPDATE SET record = excluded.record, events = excluded.events

-- name: which archived
SELECT job_id FROM {schema}.archive WHERE job_id IN (SELECT value FROM json_each(:job_ids))

-- name: delete jobs
DELETE FROM {schema}.job WHERE job_id IN (SELECT value FROM json_each(:job_ids))

-- name: entries of archived
-- Except the last entry of the job, which records its removal.
SELECT number, job, fields, lines FROM {schema}.journal
WHERE job IN (SELECT number FROM {schema}.archive WHERE job_id IN (SELECT value FROM json_each(:job_ids)))
  AND number < :below AND fields IS NOT NULL
ORDER BY number
