-- From schema 17: a function that differs. It is in schema.sql too.

-- Wakes the connections that listen, if there are any: each holds a shared lock (7168365, 2), and one for each label that it waits
-- for (7168364, its hash). `news` is status, job and label, which is empty when any waiter may have to look. Before it come how many
-- wait for the label, and the server process of one of them, which looks first.
CREATE OR REPLACE FUNCTION mam.tell(news text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF pg_try_advisory_lock(7168365, 2) AND pg_advisory_unlock(7168365, 2) AND NOT EXISTS (SELECT FROM pg_listening_channels()) THEN
        RETURN;
    END IF;
    PERFORM pg_notify('mam_news', concat_ws(' ', count(*), coalesce((array_agg(pid ORDER BY random()))[1], 0), news)) FROM pg_locks
    WHERE locktype = 'advisory' AND classid = 7168364 AND objsubid = 2
      AND objid::bigint = hashtext(substring(news FROM '^\S* \S* (.*)$')) & 4294967295
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
END $$;
