"""Faults that a developer might make, and the test that must fail for each of them.

A fault is a piece of the source and its replacement. `make mutants` puts one after another into a copy.
"""

# ruff: noqa: E501 - pieces of the source are given as they stand there

from __future__ import annotations

from mam.util.frozen import Frozen

FAULTS, WORK = "tests/faults", "/".join(("tests", "work"))
CUTS = f"{FAULTS}/test_power_cuts.py::test_acknowledged_acts_are_on_every_disk_that_a_power_cut_may_leave"
KILLS = f"{FAULTS}/test_kills.py::test_killed_before_any_step"
RESTORED = f"{FAULTS}/test_restored.py"
CONCURRENT = "tests/postgres/test_concurrency.py"
FILES, SQLITE = "src/mam/stores/files", "src/mam/stores/sqlite"


class Mutant(Frozen):
    name: str
    file: str
    old: str
    new: str
    caught_by: str


MUTANTS = [
    Mutant(
        name="a follower reads past a writer that has not committed", file="src/mam/stores/postgres/schema.sql",
        old="coalesce(least((SELECT max(number) FROM mam.journal), (SELECT min(key) FROM mam.writer)), 0)",
        new="coalesce((SELECT max(number) FROM mam.journal), 0)",
        caught_by=f"{CONCURRENT}::test_many_writers_hide_no_entry_from_a_follower",
    ),
    Mutant(
        name="a writer holds no lock for its number", file="src/mam/stores/postgres/schema.sql",
        old="    PERFORM pg_advisory_xact_lock_shared(",
        new="    PERFORM (",
        caught_by=f"{CONCURRENT}::test_many_writers_hide_no_entry_from_a_follower",
    ),
    Mutant(
        name="the record files are written before the commit", file=f"{FILES}/store.py",
        old="            last = int(self.end_offset()) if self._updates else self._mirrored_upto\n",
        new="            last = int(self.end_offset()) if self._updates else self._mirrored_upto\n            mirror.publish()\n",
        caught_by=f"{KILLS}[files-call-complete]",
    ),
    Mutant(
        name="files are called written with the commit", file=f"{FILES}/store.py",
        old="            last = int(self.end_offset()) if self._updates else self._mirrored_upto\n",
        new="            last = int(self.end_offset()) if self._updates else self._mirrored_upto\n"
        '            self._rows("save mirrored", number=last)\n',
        caught_by=f"{KILLS}[files-call-complete]",
    ),
    Mutant(
        name="what a killed act left is not written", file=f"{FILES}/store.py",
        old="                self._repair_files(job_id, is_adopted=upto == NEVER_MIRRORED)\n", new="                pass\n", caught_by=f"{KILLS}[files-call-publish]",
    ),
    Mutant(
        name="a record file of an older version is called current", file=f"{FILES}/mirror.py",
        old="if found.version == stamp.version and trust_stamp:", new="if trust_stamp:", caught_by=f"{KILLS}[files-call-publish]",
    ),
    Mutant(
        name="events are appended again after a kill", file=f"{FILES}/mirror.py",
        old="            self.records.replace_events(job_id, events(), self._aside)\n",
        new="            self.records.append_events(job_id, events())\n", caught_by=f"{KILLS}[files-call-publish]",
    ),
    Mutant(
        name="an event log that lacks events is called whole", file=f"{FILES}/mirror.py",
        old="                self.records.append_events(one.job.job_id, one.events)\n",
        new="                try:\n                    self.records.append_events(one.job.job_id, one.events)\n"
        "                except OSError:\n                    pass\n",
        caught_by=f"{RESTORED}::test_an_event_log_that_cannot_be_appended_to_is_whole_after_the_next_act",
    ),
    Mutant(
        name="the digest of a record file is not compared", file=f"{FILES}/records.py",
        old="        is_own = text[at:] == _TRAILER % (stamp.epoch.encode(), stamp.version, _digest(text[:at], stamp))\n",
        new="        is_own = True\n", caught_by=f"{FAULTS}/test_corruption.py::test_a_damaged_record_file_is_named",
    ),
    Mutant(
        name="a file that is newer than its database is overwritten", file=f"{FILES}/mirror.py",
        old="elif not one.is_new and found.version >= stamp.version:", new="elif False:",
        caught_by=f"{RESTORED}::test_an_older_database_beside_newer_files_is_refused_and_rebuilt",
    ),
    Mutant(
        name="an act on other jobs does not notice an older database", file=f"{FILES}/store.py",
        old="        self._check_end(last)\n", new="", caught_by=f"{RESTORED}::test_an_older_database_is_refused_by_every_act_also_of_a_process_that_has_it_open",
    ),
    Mutant(
        name="the lock file names an entry before it is durable", file=f"{FILES}/store.py",
        old="            last = int(self.end_offset()) if self._updates else self._mirrored_upto\n",
        new="            last = int(self.end_offset()) if self._updates else self._mirrored_upto\n"
        "            note_end(self._directory, epoch, last)\n",
        caught_by=f"{KILLS}[files-call-complete]",
    ),
    Mutant(
        name="the lock file names an entry of another journal", file=f"{FILES}/store.py",
        old=" and noted[0] == self.journal_id:", new=":",
        caught_by=f"{RESTORED}::test_an_older_database_is_refused_by_every_act_also_of_a_process_that_has_it_open",
    ),
    Mutant(
        name="a job that only its file knows is unknown", file=f"{FILES}/store.py",
        old="            self._check_not_restored(prefix)\n", new="            pass\n",
        caught_by=f"{RESTORED}::test_an_older_database_beside_newer_files_is_refused_and_rebuilt",
    ),
    Mutant(
        name="an edit of another program is overwritten", file=f"{FILES}/mirror.py",
        old="            if text and not one.is_adopted:\n", new="            if False:\n",
        caught_by=f"{RESTORED}::test_an_edit_of_another_program_stays_until_it_is_adopted",
    ),
    Mutant(
        name="an edit of another program is put away by any act", file=f"{FILES}/mirror.py",
        old="            if _is_json_object(text):\n", new="            if False:\n",
        caught_by=f"{RESTORED}::test_an_edit_of_another_program_stays_until_it_is_adopted",
    ),
    Mutant(
        name="register does not sync the record file", file=f"{FILES}/mirror.py",
        old="durable=one.is_new)", new="durable=False)", caught_by=f"{FAULTS}/test_power_cuts.py::test_a_registration_has_its_record_file_on_every_disk",
    ),
    Mutant(
        name="register does not sync the directory", file=f"{FILES}/mirror.py",
        old="            self.records.sync()\n", new="            pass\n",
        caught_by=f"{FAULTS}/test_power_cuts.py::test_a_registration_has_its_record_file_on_every_disk",
    ),
    Mutant(
        name="a restart of the machine repairs no files", file=f"{FILES}/store.py",
        old="        if is_other:\n", new="        if False:\n", caught_by=f"{CUTS}[files-2]",
    ),
    Mutant(
        name="a restart of the machine repairs no event logs", file=f"{FILES}/store.py",
        old="                self._repair_files(job_id, trust_stamp=False)\n", new="                self._repair_files(job_id)\n", caught_by=f"{CUTS}[files-2]",
    ),
    Mutant(
        name="the file of an archived job brings it back", file=f"{FILES}/adopt.py",
        old='    if store._rows("archived", job_id=job_id):\n', new="    if False:\n",
        caught_by=f"{RESTORED}::test_the_file_of_an_archived_job_brings_it_not_back",
    ),
    Mutant(
        name="an old file of mam's own moves a job back", file=f"{FILES}/adopt.py",
        old="    if rows and _is_own(store, found):\n        store", new="    if False:\n        store",
        caught_by=f"{RESTORED}::test_an_old_file_of_mams_own_moves_no_job_back",
    ),
    Mutant(
        name="an act does not take the lock", file=f"{FILES}/store.py",
        old="        with self._threads, self._lock():\n            held_before", new="        with self._threads:\n            held_before",
        caught_by=f"{RESTORED}::test_a_copy_made_under_the_lock_is_complete",
    ),
    Mutant(
        name="readers move pages into the database", file=f"{SQLITE}/database.py",
        old="        if under_lock:\n", new="        if False:\n", caught_by=f"{RESTORED}::test_readers_move_no_page_into_the_database",
    ),
    Mutant(
        name="a commit whose sync failed stays in the log", file=f"{FILES}/store.py",
        old="if self._cursor is not None and self._holds_lock:", new="if False:",
        caught_by=f"{FAULTS}/test_errors.py::test_a_failed_sync_of_sqlite_ends_the_act_and_the_connection",
    ),
    Mutant(
        name="a failed sync of the directory is tried again", file=f"{FILES}/store.py",
        old="            self._mirrored_upto = NEVER_MIRRORED\n            self._close_mirror()\n", new="            self._mirrored_upto = NEVER_MIRRORED\n",
        caught_by=f"{FAULTS}/test_errors.py::test_a_failed_sync_is_never_tried_again_on_the_same_descriptor",
    ),
    Mutant(
        name="a database that was replaced is written to", file=f"{SQLITE}/store.py",
        old="        if _identity(self._path) != self._file:\n", new="        if False:\n",
        caught_by=f"{RESTORED}::test_a_process_that_has_the_store_open_writes_into_the_database_that_has_the_name",
    ),
    Mutant(
        name="the log of a lost database is read into the new one", file=f"{FILES}/create.py",
        old="    for suffix in _SUFFIXES:  #", new='    for suffix in ("",):  #',
        caught_by=f"{RESTORED}::test_a_lost_database_is_refused_and_rebuilt",
    ),
    Mutant(
        name="a rebuild forgets the archive when it is killed", file=f"{FILES}/create.py",
        old="        if add_rest is not None:\n            add_rest(store)\n", new="",
        caught_by=f"{FAULTS}/test_kills.py::test_killed_while_the_database_is_rebuilt",
    ),
    Mutant(
        name="mam 0.1.0 is kept out after the database has its name", file=f"{FILES}/create.py",
        old="    upgrade.lock_out_old_mam(home)\n    for suffix", new="    for suffix",
        caught_by=f"{FAULTS}/test_mixed_versions.py::test_nothing_is_changed_before_mam_0_1_0_is_kept_out",
    ),
    Mutant(
        name="a take-over writes record files before mam 0.1.0 is kept out", file=f"{FILES}/create.py",
        old='        self._run("COMMIT")\n', new="        super()._commit()\n",
        caught_by=f"{FAULTS}/test_mixed_versions.py::test_nothing_is_changed_before_mam_0_1_0_is_kept_out",
    ),
    Mutant(
        name="a finished database is used though mam 0.1.0 wrote since", file=f"{FILES}/create.py",
        old="    if is_locked_out and os.path", new="    if os.path",
        caught_by=f"{FAULTS}/test_mixed_versions.py::test_a_database_finished_before_the_old_mam_was_locked_out_is_rebuilt",
    ),
    Mutant(
        name="the upgrade is two transactions", file=f"{SQLITE}/upgrade.py",
        old="    _copy_archive(database, path)\n    database", new='    database.execute("COMMIT; BEGIN IMMEDIATE")\n    _copy_archive(database, path)\n    database',
        caught_by="tests/sqlite/test_upgrade.py",
    ),
    Mutant(
        name="an archived job leaves no entry in the journal", file="src/mam/stores/sql/archive.py",
        old="            self._append_entry(job, 0, None, tuple(short_lines([archived_line(job.job_id, moment)])))\n", new="            moment = self._now()\n",
        caught_by="tests/conformance/test_sqlite.py",
    ),
    Mutant(
        name="the attempt is not compared", file="src/mam/jobs/acts.py", old="job.status is RUNNING and job.attempt == attempt and", new="job.status is RUNNING and",
        caught_by=f"{FAULTS}/test_histories.py::test_a_crowd_on_one_host_is_as_one_after_the_other",
    ),
    Mutant(
        name="the claim id is not compared", file="src/mam/jobs/acts.py",
        old="return claim_id is None or job.claim_id is None or claim_id == job.claim_id", new="return True",
        caught_by="tests/conformance/test_memory.py",
    ),
    Mutant(
        name="a claim ignores a key in use", file="src/mam/stores/sql/queries.sql",
        old="other.exclusive = job.exclusive AND other.status = 'running'))\nORDER BY", new="other.exclusive = job.exclusive AND false))\nORDER BY",
        caught_by="tests/conformance/test_sqlite.py",
    ),
    Mutant(
        name="any host claims a conversation", file="src/mam/stores/sql/queries.sql",
        old="blocked = 0 AND host IN ('', :host)\n", new="blocked = 0\n",
        caught_by="tests/conformance/test_sqlite.py",
    ),
    Mutant(
        name="SQLite's writers do not queue before they read", file=f"{SQLITE}/store.py",
        old="BEGIN IMMEDIATE", new="BEGIN DEFERRED", caught_by="tests/conformance/test_sqlite.py",
    ),
    Mutant(
        name="no sync of a new directory's name", file="src/mam/stores/private_files.py",
        old="    sync_directory(parent)  #", new="    pass  #", caught_by=f"{CUTS}[sqlite-2]",
    ),
    Mutant(
        name="secrets are not synced", file="src/mam/stores/secrets.py",
        old="        os.fsync(descriptor)\n", new="",
        caught_by=f"{FAULTS}/test_power_cuts.py::test_what_is_kept_beside_the_journal_is_old_or_new_after_a_cut",
    ),
    Mutant(
        name="NORMAL for FULL", file=f"{SQLITE}/database.py", old='"synchronous = FULL"', new='"synchronous = NORMAL"',
        caught_by=f"{CUTS}[sqlite-2]",
    ),
    Mutant(
        name="an expired lease is not looked at", file="src/mam/jobs/sweep.py",
        old="left is not None and left <= 0", new="left is not None and left <= -86_400_000",
        caught_by="tests/unit/test_sweep.py",
    ),
    Mutant(
        name="the lease is on the wall clock", file="src/mam/jobs/lease.py",
        old="        if self.boot_id and self.boot_id == moment.boot_id:\n            return self.boot_ms - moment.boot_ms\n",
        new="", caught_by="tests/unit/test_model.py::TestMemory",
    ),
    Mutant(
        name="a job that was lost too often is tried again", file="src/mam/jobs/sweep.py",
        old="if losses >= job.max_losses:", new="if losses > job.max_losses:", caught_by="tests/unit/test_sweep.py",
    ),
    Mutant(
        name="a job is completed without a check of its artifacts", file="src/mam/jobs/acts.py",
        old="    if artifacts_unchecked and job.expected_artifacts:\n", new="    if False:\n",
        caught_by="tests/unit/test_registry.py",
    ),
    Mutant(
        name="the lock file is deleted while it is held", file=f"{FILES}/lock.py",
        old="            _held[key] = [_acquire(self._directory, self._wait_seconds), 1]\n",
        new="            _held[key] = [_acquire(self._directory, self._wait_seconds), 1]\n            os.unlink(os.path.join(self._directory, LOCK_FILE))\n",
        caught_by=f"{FAULTS}/test_histories.py::test_a_crowd_on_one_host_is_as_one_after_the_other",
    ),
    Mutant(
        name="a lock file that was replaced is trusted", file=f"{FILES}/lock.py",
        old="    return (mine.st_dev, mine.st_ino) == (theirs.st_dev, theirs.st_ino)", new="    return bool(mine and theirs)",
        caught_by="tests/files/test_lock.py",
    ),
    Mutant(
        name="a child keeps its parent's lock", file=f"{FILES}/lock.py",
        old="os.register_at_fork(after_in_child=_forget_in_child)", new="", caught_by="tests/files/test_lock.py",
    ),
    Mutant(
        name="a tmux session is found by the beginning of its name", file="src/mam/agents/tmux.py",
        old="if found.session == session]", new="if found.session.startswith(session)]", caught_by="tests/agents/test_sessions.py::test_a_session_whose_name_begins_like_another_s_is_another_one",
    ),
    Mutant(
        name="a process is known by its pid alone", file="src/mam/machine/processes.py",
        old="and identity_of(entry) == process", new="", caught_by=f"{WORK}/test_processes.py",
    ),
    Mutant(
        name="a short write is not finished", file="src/mam/util/encoding.py",
        old="    view = memoryview(data)\n    while view:\n        view = view[os.write(descriptor, view) :]",
        new="    os.write(descriptor, data)", caught_by=f"{FAULTS}/test_errors.py::test_short_writes_are_finished",
    ),
    Mutant(
        name="a generation that was replaced is let in again", file="src/mam/jobs/generation.py",
        old="    if generation_id in known.superseded:\n", new="    if not known:\n",
        caught_by=f"{FAULTS}/test_histories.py::test_one_of_many_competing_sessions_wins",
    ),
    Mutant(
        name="what a dead agent left is not looked for", file="src/mam/work/attempt.py",
        old="            left.append(end_orphans(find_orphans))\n", new="            pass\n", caught_by=f"{WORK}/test_orphans.py",
    ),
    Mutant(
        name="a pid file still names a keeper that has another job", file="src/mam/work/headless_attempt.py",
        old="            self._remove_pid_line()\n", new="", caught_by=f"{WORK}/test_pidfiles.py",
    ),
    Mutant(
        name="an inbox whose ledger is lost takes its files again", file="src/mam/inbox/repair.py",
        old='(job.inbox or {}).get("root") != settings.root or', new="True or",
        caught_by=f"{FAULTS}/test_kept_files.py::test_a_damaged_ledger_of_an_inbox_loses_no_file",
    ),
    Mutant(
        name="a paused agent keeps back the others of its key", file=f"{SQLITE}/queries.sql",
        old="AND (label, agent, host) > (head.label, head.agent, head.host)", new="AND label > head.label",
        caught_by="tests/conformance/test_sqlite.py",
    ),
    Mutant(
        name="a worker does not give its claim id", file="src/mam/work/claim.py",
        old='"claim_id": job.claim_id}', new='"claim_id": None}', caught_by=f"{WORK}/test_claim.py",
    ),
    Mutant(
        name="the position moves before the broker has answered", file="src/mam/bus/relay.py",
        old="while in_flight and unacknowledged.isdisjoint(in_flight[0][1]):", new="while in_flight:",
        caught_by="tests/bus/test_relay.py",
    ),
    Mutant(
        name="the audit log's position moves before its lines", file="src/mam/audit/append.py",
        old="        for entry in left:\n",
        new="        if left:\n            cursor.save(position_after(left[-1], batch.epoch), caught_up=True)\n"
        "        for entry in left:\n",
        caught_by="tests/audit/test_crashes.py",
    ),
    Mutant(
        name="a consumer trusts the position of a journal that was restored", file="src/mam/stores/consumer.py",
        old="(self.number, self.mark) == (entry.number, entry_checksum(entry))", new="self.number == entry.number",
        caught_by="tests/conformance/test_sqlite.py",
    ),
    Mutant(
        name="a consumer trusts the position of another journal", file="src/mam/stores/consumer.py",
        old="is_known = self.at.epoch == epoch", new="is_known = bool(epoch)", caught_by="tests/conformance/test_sqlite.py",
    ),
    Mutant(
        name="an audit log of mam 0.1.0 gets every line twice", file="src/mam/audit/append.py",
        old="                if not (may_be_there and self._is_there(folder, entry.job_id, named, again=again)):\n",
        new="                if True:\n", caught_by="tests/audit/test_of_0_1_0.py",
    ),
]  # fmt: skip
