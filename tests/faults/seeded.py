"""Faults that somebody might put into the product, and the test that must go red for each of them.

A fault is a piece of the source and what stands in its place. `make mutants` puts one after the other into a copy.
"""

# ruff: noqa: E501 - pieces of the source are given as they stand there

from __future__ import annotations

from mam.frozen import Frozen

FAULTS, WORK = "tests/faults", "/".join(("tests", "work"))
CUTS = f"{FAULTS}/test_power_cuts.py::test_what_was_acknowledged_is_on_every_disk_that_a_cut_may_leave"
FILES, SQLITE, POSTGRES = "src/mam/stores/files", "src/mam/stores/sqlite", "src/mam/stores/postgres"


class Mutant(Frozen):
    name: str
    file: str
    old: str
    new: str
    caught_by: str


MUTANTS = [
    Mutant(
        name="no sync of the directory after a rename", file=f"{FILES}/directory.py",
        old="        os.fsync(self.descriptor)\n        return self.expected()", new="        return self.expected()",
        caught_by=f"{CUTS}[files-1]",
    ),
    Mutant(
        name="no sync of a new directory's name", file="src/mam/stores/beside.py",
        old="    sync_directory(parent)  #", new="    pass  #", caught_by=f"{CUTS}[sqlite-1]",
    ),
    Mutant(
        name="no sync of the journal", file=f"{FILES}/journal.py",
        old="            os.fdatasync(self._descriptor)\n        except BaseException", new="        except BaseException",
        caught_by=f"{CUTS}[files-1]",
    ),
    Mutant(
        name="a record is renamed before it is synced", file=f"{FILES}/records.py",
        old="            os.fsync(descriptor)\n", new="            pass\n", caught_by=f"{CUTS}[files-1]",
    ),
    Mutant(
        name="a new segment is not synced before it has its name", file=f"{FILES}/journal.py",
        old="            os.fsync(descriptor)\n            os.rename(fresh", new="            os.rename(fresh",
        caught_by=f"{CUTS}[files-1]",
    ),
    Mutant(
        name="secrets and pauses are not synced", file="src/mam/stores/beside.py",
        old="        os.fsync(descriptor)\n        os.rename(temporary, path)", new="        os.rename(temporary, path)",
        caught_by=f"{FAULTS}/test_power_cuts.py::test_what_is_kept_beside_the_journal_is_old_or_new_after_a_cut",
    ),
    Mutant(
        name="NORMAL for FULL", file=f"{SQLITE}/database.py", old='"synchronous = FULL"', new='"synchronous = NORMAL"',
        caught_by=f"{CUTS}[sqlite-1]",
    ),
    Mutant(
        name="the record is written before the journal", file=f"{FILES}/book.py",
        old="        drafts = [Draft(step) for step in steps]\n        try:\n            self._keep_secrets(steps)",
        new="        drafts = [Draft(step) for step in steps]\n        try:\n"
        "            self._prepare(drafts)\n"
        "            [(draft.put(self.records), setattr(draft, '_prepared', None)) for draft in drafts]\n"
        "            self._keep_secrets(steps)",
        caught_by=f"{FAULTS}/test_kills.py::test_killed_before_any_step[files-call-complete]",
    ),
    Mutant(
        name="the attempt is not compared", file="src/mam/jobs/acts.py",
        old="job.status is RUNNING and job.attempt == attempt and _is_claim", new="job.status is RUNNING and _is_claim",
        caught_by=f"{FAULTS}/test_histories.py::test_a_crowd_on_one_host_is_as_one_after_the_other",
    ),
    Mutant(
        name="the claim id is not compared", file="src/mam/jobs/acts.py",
        old="return claim_id is None or job.claim_id is None or claim_id == job.claim_id", new="return True",
        caught_by="tests/conformance/test_memory.py",
    ),
    Mutant(
        name="a worker does not give its claim id", file="src/mam/work/holding.py",
        old='"claim_id": job.claim_id}', new='"claim_id": None}', caught_by=f"{WORK}/test_holding.py",
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
        name="the number is read outside the act", file=f"{FILES}/store.py",
        old="        def do(book: Book) -> Job:\n            job = book.load(job_id)\n",
        new="        job = self.get(job_id)\n\n        def do(book: Book) -> Job:\n",
        caught_by=f"{FAULTS}/test_histories.py::test_a_crowd_on_one_host_is_as_one_after_the_other",
    ),
    Mutant(
        name="SQLite's writers do not queue before they read", file=f"{SQLITE}/queries.sql",
        old="BEGIN IMMEDIATE", new="BEGIN DEFERRED", caught_by="tests/conformance/test_sqlite.py",
    ),
    Mutant(
        name="SQLite writes a job that is not as it was known", file=f"{SQLITE}/queries.sql",
        old=", room = NULL\nWHERE number = :number AND record = :before", new=", room = NULL\nWHERE number = :number",
        caught_by="tests/sqlite/test_known.py",
    ),
    Mutant(
        name="SQLite ends a job that is not as it was known", file=f"{SQLITE}/queries.sql",
        old="    room = NULL\nWHERE number = :number AND record = :before",
        new="    room = NULL\nWHERE number = :number", caught_by="tests/sqlite/test_known.py",
    ),
    Mutant(
        name="a key that is held is not written down", file=f"{SQLITE}/queries.sql",
        old=",\n    holds_key = CASE WHEN :status = 'running' THEN exclusive END\n", new="\n",
        caught_by="tests/conformance/test_sqlite.py",
    ),
    Mutant(
        name="a job is completed and nobody looks at its artifacts", file="src/mam/jobs/acts.py",
        old="    if look_first and job.expected_artifacts:\n", new="    if False:\n",
        caught_by="tests/unit/test_registry.py",
    ),
    Mutant(
        name="an entry of an act that came to nothing stays", file=f"{SQLITE}/plain.py",
        old='            self._do("take entry back")  # nothing is to be heard of the act\n', new="",
        caught_by="tests/sqlite/test_known.py",
    ),
    Mutant(
        name="SQLite writes a record into another job's row", file=f"{SQLITE}/queries.sql",
        old=" AND job_id = :job_id\n\n-- name: update known job", new="\n\n-- name: update known job",
        caught_by="tests/sqlite/test_contradictions.py",
    ),
    Mutant(
        name="a claim goes past what stands before it", file=f"{SQLITE}/plain.py",
        old="        if not found or found[0][3]:\n", new="        if not found:\n", caught_by="tests/conformance/test_sqlite.py",
    ),
    Mutant(
        name="an end does not name what was told before it", file=f"{SQLITE}/plain.py",
        old="        if job.last_seq:  # ", new="        if False:  # ", caught_by="tests/sqlite/test_known.py",
    ),
    Mutant(
        name="an interrupt behind BEGIN leaves a transaction open", file=f"{SQLITE}/acting.py",
        old="            try:\n                cursor.execute(_BEGIN)\n", new="            cursor.execute(_BEGIN)\n            try:\n",
        caught_by="tests/sqlite/test_contradictions.py",
    ),
    Mutant(
        name="PostgreSQL's row is not held while it is decided", file=f"{POSTGRES}/queries.sql",
        old="    FOR UPDATE\n) AS held\n\n-- name: jobs to change", new=") AS held\n\n-- name: jobs to change",
        caught_by=f"{FAULTS}/test_histories.py::test_a_crowd_on_postgresql_is_as_one_after_the_other",
    ),
    Mutant(
        name="the position moves before the broker has answered", file="src/mam/bus/relay.py",
        old="while on_their_way and open_numbers.isdisjoint(on_their_way[0][1]):", new="while on_their_way:",
        caught_by="tests/bus/test_relay.py",
    ),
    Mutant(
        name="the lock file is deleted while it is held", file=f"{FILES}/lock.py",
        old="            _held[key] = [_acquire(self._directory, self._wait_seconds), 1]\n",
        new="            _held[key] = [_acquire(self._directory, self._wait_seconds), 1]\n            os.unlink(os.path.join(self._directory, LOCK_FILE))\n",
        caught_by=f"{FAULTS}/test_histories.py::test_a_crowd_on_one_host_is_as_one_after_the_other",
    ),
    Mutant(
        name="a lock file that was replaced is believed", file=f"{FILES}/lock.py",
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
        old="and named(entry) == process", new="", caught_by=f"{WORK}/test_processes.py",
    ),
    Mutant(
        name="a short write is not finished", file="src/mam/writing.py",
        old="    view = memoryview(data)\n    while view:\n        view = view[os.write(descriptor, view) :]",
        new="    os.write(descriptor, data)", caught_by=f"{FAULTS}/test_errors.py::test_short_writes_are_finished",
    ),
    Mutant(
        name="a frame's checksum is not looked at", file=f"{FILES}/frames.py",
        old="        if int(line[:8], 16) != crc32(body):\n            return None\n", new="",
        caught_by=f"{FAULTS}/test_corruption.py::test_the_journal",
    ),
    Mutant(
        name="a torn tail is thrown away", file=f"{FILES}/journal.py",
        old='            self._put_aside(f"journal-{self.first}-{offset}.torn", tail)\n', new="",
        caught_by=f"{FAULTS}/test_corruption.py::test_the_journal",
    ),
    Mutant(
        name="a failed sync is tried again", file=f"{FILES}/journal.py",
        old="            pass  # the torn tail stays for the next holder to put aside\n        self.close()",
        new="            pass  # the torn tail stays for the next holder to put aside\n        os.fdatasync(self._descriptor)",
        caught_by=f"{FAULTS}/test_errors.py::test_a_failed_sync_is_never_tried_again_on_the_same_descriptor",
    ),
    Mutant(
        name="an act that could not be carried out is called done", file=f"{FILES}/book.py",
        old="            self.index.roll_back()\n            self.behind = True\n\n    def gone",
        new="            self.index.commit(self.applied)\n\n    def gone",
        caught_by=f"{FAULTS}/test_errors.py::test_an_error_at_any_call_leaves_the_act_done_or_not_done",
    ),
    Mutant(
        name="events are written again after a kill", file=f"{FILES}/event_log.py",
        old='if int(event["seq"]) > last]', new="if last >= 0]",
        caught_by=f"{FAULTS}/test_kills.py::test_killed_before_any_step[files-call-publish]",
    ),
    Mutant(
        name="leftovers of killed writers stay", file=f"{FILES}/foreign.py",
        old="        book.records.discard(name)\n", new="        pass\n",
        caught_by=f"{FAULTS}/test_kills.py::test_killed_before_any_step[files-call-complete]",
    ),
    Mutant(
        name="an id that is taken is overwritten", file=f"{FILES}/registering.py",
        old="    if book.records.exists(draft.job_id):\n        raise AlreadyRegistered(job=draft.job_id)\n", new="",
        caught_by=f"{FAULTS}/test_histories.py::test_a_crowd_on_one_host_is_as_one_after_the_other",
    ),
    Mutant(
        name="the audit log's position moves before its lines", file="src/mam/audit/copying.py",
        old="        for entry in left:\n",
        new="        if left:\n            cursor.save(position_behind(left[-1], batch.epoch), caught_up=True)\n"
        "        for entry in left:\n",
        caught_by="tests/audit/test_crashes.py",
    ),
    Mutant(
        name="a journal that was cut takes records back", file=f"{FILES}/rebuild.py",
        old="        if not self.damages and all(", new="        if not self.damages or all(",
        caught_by=f"{FAULTS}/test_corruption.py::test_a_journal_cut_between_two_frames_takes_no_record_back",
    ),
    Mutant(
        name="a record that was written here is not looked at again", file=f"{FILES}/book.py",
        old=" if kept is not None and self.records.stamp(job_id) == kept.stamp else None", new="",
        caught_by="tests/files/test_foreign_writes.py",
    ),
    Mutant(
        name="a generation that was replaced is let in again", file="src/mam/jobs/generation.py",
        old="    if generation_id in known.superseded:\n", new="    if not known:\n",
        caught_by=f"{FAULTS}/test_histories.py::test_of_many_that_want_to_be_one_session_one_is",
    ),
    Mutant(
        name="what a dead agent left is not looked for", file="src/mam/work/attempt.py",
        old="            left.append(end_strays(strays))\n", new="            pass\n", caught_by=f"{WORK}/test_strays.py",
    ),
    Mutant(
        name="a trace still names a keeper that has another job", file="src/mam/work/attempt.py",
        old="            self._forget_trace()\n", new="", caught_by=f"{WORK}/test_traces.py",
    ),
    Mutant(
        name="a job that is half way into the archive is seen twice", file=f"{FILES}/store.py",
        old="        return self._records().exists(job_id)\n", new="        return False\n",
        caught_by="tests/files/test_archive_half_way.py",
    ),
    Mutant(
        name="a consumer trusts the position of a journal that was restored", file="src/mam/stores/consumer.py",
        old="(self.number, self.mark) == (entry.number, mark_of(entry))", new="self.number == entry.number",
        caught_by="tests/conformance/test_sqlite.py",
    ),
    Mutant(
        name="a consumer trusts the position of another journal", file="src/mam/stores/consumer.py",
        old="self.at.epoch == epoch and ", new="", caught_by="tests/conformance/test_sqlite.py",
    ),
    Mutant(
        name="an audit log of mam 0.1.0 gets every line twice", file="src/mam/audit/copying.py",
        old="                if not (may_be_there and self._is_there(folder, entry.job_id, named, again=again)):\n",
        new="                if True:\n", caught_by="tests/audit/test_of_0_1_0.py",
    ),
    Mutant(
        name="an event log that lacks events is believed", file=f"{FILES}/event_damage.py",
        old="    if row is None or is_complete(found, row.state[\"last_seq\"]):\n", new="    if True:\n",
        caught_by=f"{FAULTS}/test_corruption.py::test_the_events_of_a_job",
    ),
    Mutant(
        name="an inbox whose ledger is lost takes its files again", file="src/mam/inbox/repairing.py",
        old='(job.inbox or {}).get("root") != settings.root or', new="True or",
        caught_by=f"{FAULTS}/test_kept_files.py::test_the_ledger_of_an_inbox",
    ),
    Mutant(
        name="what becomes pending does not move the line", file=f"{POSTGRES}/line.py",
        old='SURELY if values["news"] and values["status"] == PENDING else NO', new="NO",
        caught_by="tests/postgres/test_line.py::test_what_comes_to_the_front_is_next",
    ),
    Mutant(
        name="the line is looked at while somebody registers", file=f"{POSTGRES}/queries.sql",
        old="WHEN pg_advisory_xact_lock_shared(7168365, 3) IS NOT NULL THEN nextval('job_number') END",
        new="ELSE nextval('job_number') END",
        caught_by="tests/postgres/test_line.py::test_it_is_not_known_while_somebody_registers",
    ),
    Mutant(
        name="a pause does not move the line", file=f"{POSTGRES}/queries.sql",
        old=", moved AS (UPDATE store SET moves = moves + 1)", new="",
        caught_by="tests/postgres/test_line.py::test_a_pause_holds_at_once",
    ),
    Mutant(
        name="a claim whose answer was lost goes on behind one's back", file=f"{POSTGRES}/queries.sql",
        old="  AND lost.backend_start < mine.backend_start", new="  AND false",
        caught_by="tests/postgres/test_fresh.py::test_a_claim_that_the_server_is_still_at_is_ended_and_made_again",
    ),
    Mutant(
        name="an interrupted connection is used again", file=f"{POSTGRES}/wire.py",
        old="        except BaseException as error:\n            self.close()  # nobody knows where it stands\n"
        "            if not isinstance(error, Error):\n                raise\n",
        new="        except Error:\n            self.close()\n",
        caught_by="tests/postgres/test_fresh.py::test_interrupted_on_the_way_to_where_the_server_listens_again",
    ),
    Mutant(
        name="a paused agent keeps back the others of its key", file=f"{SQLITE}/queries.sql",
        old="AND (label, agent) > (head.label, head.agent)", new="AND label > head.label",
        caught_by="tests/conformance/test_sqlite.py",
    ),
]  # fmt: skip
