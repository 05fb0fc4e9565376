"""Records, journal and index as one thing, for whoever holds the registry's lock.

An act is written in this order, and may be cut off anywhere:

1. one frame in the journal, which the disk begins to write
2. the new records, under temporary names           (no room for them: the frame is taken back, nothing has happened)
3. the frame is synced                              (THE COMMIT: from here on the act has happened)
4. records synced and renamed, event logs appended, directory stamped and synced
5. the index, with the place in the journal up to which all this is true

Whoever comes next and finds the journal ahead of the index repeats step 4 and 5 (catch_up.py), also for a frame whose
writer was killed before its sync: if it is whole it has happened now, and nobody has been told otherwise.
"""

from __future__ import annotations

import os

from mam.errors import BadRecord, StoreUnavailable, UnknownJob
from mam.jobs.record import parse_job
from mam.jobs.status import RUNNING
from mam.jobs.sweep import SWEEP_LIMIT, settle
from mam.stores.beside import make_directories
from mam.stores.common import event_of
from mam.stores.files.directory import Directory
from mam.stores.files.drafts import Draft, Step
from mam.stores.files.index import NO_STAMP, Applied, DatabaseError, Index, digest
from mam.stores.files.journal import Journal
from mam.stores.files.memory import Memory
from mam.stores.files.records import Records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence
    from typing import Any

    from mam.clock import Clock, Moment
    from mam.errors import StoreDamaged
    from mam.jobs.change import Line
    from mam.jobs.record import Job, Json
    from mam.ownership import Tracked
    from mam.stores.files.archive import Archive
    from mam.stores.files.index import Row, Stamp
    from mam.stores.files.journal import Place
    from mam.stores.files.memory import Written
    from mam.stores.files.records import Found
    from mam.stores.port import Problem
    from mam.stores.secrets import Secrets

STORE, INDEX, ARCHIVE = ".store", "index.sqlite", "archive.sqlite"
MENDED = (0, 0, 0)
"""In the place of a file's stamp: what was wrong with it has been put right."""


class Book:
    def __init__(self, directory: Directory, clock: Clock) -> None:
        self.clock = clock
        self.directory = directory
        self.home = os.path.join(directory.path, STORE)
        try:
            make_directories(self.home)
            self.journal = Journal(self.home, clock.new_id)
            self.index = Index(os.path.join(self.home, INDEX))
        except OSError as error:
            raise StoreUnavailable(store=directory.path, problem=_said(error)) from None
        self.records = Records(self.directory)
        self._memory = Memory()
        self.applied: Applied
        self._left: Applied | None = None
        """As the index has it since this process wrote there last."""
        self._alone_since = False
        """Whether nobody else has acted or been in the directory since then."""
        self.behind = False
        """Whether an act of this session is committed but not carried out, so that nothing may be built on it."""
        self._inline_secrets: dict[str, dict[str, Any]] = {}
        self._tracked: Tracked | None = None

    def close(self) -> None:
        self.index.close()
        self.journal.close()

    def is_as_left(self, end: Place, *, thoroughly: bool) -> bool:
        """Whether everything agrees because nobody has acted since this process did, nor been in the directory: then
        the index need not be asked how far it is, nor what it says of a job that is remembered here."""
        left = self._left
        self._alone_since = (
            left is not None
            and not thoroughly
            and left.place == end
            and left.journal_id == self.journal.journal_id
            and left.directory_ns == self.directory.modified_ns()
        )
        if left is not None and self._alone_since:
            self.applied = left
            self.directory.expect(left.directory_ns)
        return self._alone_since

    # -- reading one job -------------------------------------------------------------------------------------------

    def load(self, job_id: str) -> Job:
        """The job as its file says now. Somebody else's edit is taken over first."""
        known = self._recalled(job_id)
        if known is not None and self._alone_since:
            return known.job
        row = self.index.row(job_id)
        if known is not None and row is not None and not row.bad and row.stamp == known.stamp:
            return known.job
        try:
            found = self.records.read(job_id)
            if row is None or found.stamp != row.stamp:
                self.check_not_tracked(job_id)
        except FileNotFoundError:
            if row is not None:
                self.gone([job_id])
            raise UnknownJob(job=job_id, store=self.directory.path) from None
        except BadRecord as bad:
            self.note_bad(job_id, bad)
            raise
        if row is None:
            return self._welcome(found)
        if found.stamp != row.stamp:
            return self.adopt(found, row)
        self._remember_secrets(found)
        job = found.job if found.job.number == row.number else found.job.replace(number=row.number)
        if row.bad:
            self.quietly(lambda: self.index.put(job, job.to_json(), found.stamp))
        return job

    def _recalled(self, job_id: str) -> Written | None:
        """As this process wrote it last, if its file has not been touched since."""
        kept = self._memory.recall(job_id)
        try:
            return kept if kept is not None and self.records.stamp(job_id) == kept.stamp else None
        except FileNotFoundError:
            return None

    def check_not_tracked(self, job_id: str) -> None:
        """A record that came with a repository is not taken in."""
        names = self.tracked()
        if names is None:
            raise StoreUnavailable(store=self.directory.path, problem="git is changing the repository that holds it")
        if f"{job_id}.json" in names:
            why = f"came with a repository (git tracks it); `mam trust {self.directory.path}` lets it count"
            raise BadRecord(file=os.path.join(self.directory.path, f"{job_id}.json"), problem=why)

    def tracked(self) -> Container[str] | None:
        """The files here that git tracks; None while git is at work."""
        if self._tracked is None:
            from mam.ownership import Tracked

            self._tracked = Tracked(os.path.abspath(self.directory.path))
        return self._tracked.now()

    def _welcome(self, found: Found) -> Job:
        """A file that could not be read before, and has been mended in place."""
        from mam.stores.files.foreign import welcome

        welcome(self, [found])
        return self.load(found.job.job_id)

    def adopt(self, found: Found, row: Row) -> Job:
        """A record that mam knew and that somebody else has written."""
        from mam.jobs.adopt import adopt_known

        self._remember_secrets(found)
        same = row.state["prompt"] == digest(found.job.prompt)
        before = parse_job({**row.state, "prompt": found.job.prompt if same else ""}, self.directory.path)
        adoption = adopt_known(before, found.job, found.given, self.clock.now(), self.rival(before))
        if adoption.change.lines:
            self.commit([Step(before=before, change=adoption.change)])
        else:
            self.quietly(lambda: self.index.put(before, before.to_json(), found.stamp))
        if adoption.complaint:
            complaint = f"{adoption.complaint} The rest of that write was taken over."
            self.quietly(lambda: self.index.note_problem(f"{before.job_id}.json", complaint, MENDED))
        return adoption.change.job

    def rival(self, job: Job) -> str | None:
        """Another job that runs under this one's exclusive key: no foreign write can make a second one run."""
        if job.exclusive is None or job.status is RUNNING:
            return None
        holder = self.index.gate.holder(job.exclusive)
        return None if holder == job.job_id else holder

    # -- what others left ------------------------------------------------------------------------------------------

    def note_bad(self, job_id: str, bad: BadRecord) -> None:
        try:
            stamp = self.records.stamp(job_id)
        except FileNotFoundError:
            return  # gone again
        self._memory.forget(job_id)
        self.quietly(lambda: self.index.mark_bad(job_id, str(bad.facts["problem"]), stamp))

    def note_problem(self, file: str, problem: str, stamp: Stamp) -> None:
        self.quietly(lambda: self.index.note_problem(file, problem, stamp))

    def note_damage(self, damage: StoreDamaged) -> None:
        """Of the journal, by name and byte."""
        file, offset, problem = (str(damage.facts[name]) for name in ("file", "offset", "problem"))
        said = f"byte {offset}: {problem}; the records are whole, some history is not"
        self.note_problem(os.path.basename(file), said, NO_STAMP)

    def problems_told(self) -> list[Problem]:
        """All of them; those that are mended already are told once."""
        found = self.index.problems()
        if any(stamp == MENDED for _problem, stamp in found):
            self.quietly(lambda: self.index.forget_mended(MENDED))
        return [problem for problem, _stamp in found]

    def looked_around(self) -> None:
        """Everything in the directory is known now."""
        directory_ns = self.directory.expected()
        if directory_ns != self.applied.directory_ns:
            self.applied = self.applied.replace(directory_ns=directory_ns)
            self.quietly(lambda: None)

    # -- writing ---------------------------------------------------------------------------------------------------

    def commit(self, steps: list[Step]) -> None:
        """One act: all of its steps, or none."""
        steps = [step for step in steps if step.change.lines]
        if not steps:
            return
        self._check_not_behind()
        drafts = [Draft(step) for step in steps]
        try:
            self._keep_secrets(steps)
            place = self.journal.append(self._entries(drafts), lambda: self._prepare(drafts))
        except BaseException as error:
            for draft in drafts:
                draft.discard(self.records)
            if isinstance(error, OSError):
                raise StoreUnavailable(store=self.directory.path, problem=_said(error)) from None
            raise
        highest = max(step.change.job.number for step in steps)
        self.applied = self.applied.replace(
            place=place,
            next_entry=self.applied.next_entry + len(steps),
            next_number=max(self.applied.next_number, highest + 1),
        )
        try:
            self._materialise(drafts)
        except (OSError, DatabaseError):
            # The act is committed, and that is what was promised; who comes next carries the rest out.
            self.index.roll_back()
            self.behind = True

    def gone(self, job_ids: list[str]) -> None:
        """Somebody removed these records; their history stays in the audit log."""
        moment = self.clock.now()
        said = {"timestamp": moment.second, "event": "removed"}
        self.remove({job_id: {**said, "job_id": job_id, "by": "foreign"} for job_id in job_ids})

    def remove(self, told: dict[str, Line], remove_files: Callable[[], None] | None = None) -> None:
        """Jobs leave the registry, each with the line that says why."""
        self._check_not_behind()
        entries = [self._entry(rank, job_id, None, (said,)) for rank, (job_id, said) in enumerate(told.items())]
        place = self.journal.append(entries)
        self.applied = self.applied.replace(place=place, next_entry=self.applied.next_entry + len(entries))
        try:
            if remove_files is not None:
                remove_files()
                self.applied = self.applied.replace(directory_ns=self.directory.synced())
            self.quietly(lambda: self.index.remove(list(told)))
        except (OSError, DatabaseError):
            # As in `commit`: who comes next carries the rest out.
            self.index.roll_back()
            self.behind = True

    def settle(self, moment: Moment) -> list[Job]:
        """What time has decided, for a bounded number of jobs, longest due first."""
        steps = []
        for job_id in self.index.due(moment, SWEEP_LIMIT):
            try:
                job = self.load(job_id)
            except (BadRecord, UnknownJob):
                continue  # marked, and not in the way of the others any more
            steps.append(Step(before=job, change=settle(job, moment)))
        self.commit(steps)
        return [step.change.job for step in steps if step.change.lines] + self._settle_dependents(moment)

    def _settle_dependents(self, moment: Moment) -> list[Job]:
        """What the end of a job means for some of those that come after it."""
        page = self.index.gate.page(SWEEP_LIMIT)
        if page is None:
            return []
        from mam.jobs.dependency import settle_dependency

        steps = []
        for job_id in page.dependents:
            try:
                job = self.load(job_id)
                steps.append(Step(before=job, change=settle_dependency(job, self.needed(job), moment)))
            except (BadRecord, UnknownJob):
                continue  # looked at again when its file, or that of the job it waits for, has been mended
        self.commit(steps)
        self.quietly(lambda: self.index.gate.turn(page))
        return [step.change.job for step in steps if step.change.lines]

    def needed(self, job: Job) -> dict[str, Job | None]:
        return {job_id: self.newest(job_id) for job_id in job.after}

    def newest(self, job_id: str) -> Job | None:
        """The last retry of a job, or itself, wherever they are; None when it is gone."""
        try:
            return self.load(self.index.gate.newest(job_id))
        except UnknownJob:
            with self.archive() as archive:
                archived = archive.newest(job_id)
        if archived is None or archived.job_id == job_id:
            return archived
        try:
            return self.load(self.index.gate.newest(archived.job_id))
        except UnknownJob:
            return archived

    def archive(self) -> Archive:
        from mam.stores.files.archive import Archive

        return Archive(self.home)

    def _prepare(self, drafts: list[Draft]) -> None:
        try:
            for draft in drafts:
                draft.prepare(self.records, self._memory)
        except OSError as error:
            raise StoreUnavailable(store=self.directory.path, problem=_said(error)) from None

    def _remember_secrets(self, found: Found) -> None:
        """Until the record is rewritten, which is when they have to be kept elsewhere."""
        if found.secrets:
            self._inline_secrets[found.job.job_id] = found.secrets

    def _keep_secrets(self, steps: list[Step]) -> None:
        for step in steps:
            inline = self._inline_secrets.pop(step.change.job.job_id, None)
            if inline and not step.stamp:
                self.keep_secrets(step.change.job.job_id, inline)

    def keep_secrets(self, job_id: str, secrets: Json) -> None:
        self.secrets().keep(job_id, secrets)

    def secrets(self) -> Secrets:
        from mam.stores.secrets import Secrets

        return Secrets(os.path.join(self.home, "secrets"))

    def _entries(self, drafts: list[Draft]) -> list[Json]:
        return [self._entry(rank, draft.job.job_id, draft.changed, draft.lines) for rank, draft in enumerate(drafts)]

    def _entry(self, rank: int, job_id: str, fields: Json | None, lines: Sequence[Line]) -> Json:
        return {"number": self.applied.next_entry + rank, "job_id": job_id, "fields": fields, "lines": list(lines)}

    def _materialise(self, drafts: list[Draft]) -> None:
        problems: dict[str, str] = {}
        for draft in drafts:
            draft.put(self.records)
            problem = self.append_events(draft.job.job_id, draft.lines)
            if problem:
                problems[f"{draft.job.job_id}.events.log"] = problem
        self.applied = self.applied.replace(directory_ns=self.directory.synced())
        self.index.begin()
        for draft in drafts:
            self.index.put(draft.job, draft.fields, draft.stamp)
        for file, problem in problems.items():
            self.index.note_problem(file, problem, NO_STAMP)
        self._carried_out()
        for draft in drafts:
            draft.keep(self._memory)

    def append_events(self, job_id: str, lines: Sequence[Line]) -> str | None:
        """What is wrong with the job's event log, if anything: it is made from the journal, and stops nobody."""
        told = [event for event in map(event_of, lines) if event is not None]
        if not told:
            return None
        from mam.stores.files.event_log import append_events

        return append_events(self.directory, job_id, told)

    def _carried_out(self) -> None:
        self.index.commit(self.applied)
        self.journal.mark(self.applied.place, self.applied.directory_ns)
        self._left = self.applied

    def _check_not_behind(self) -> None:
        if self.behind:
            raise StoreUnavailable(store=self.directory.path, problem="the last act is not fully carried out yet")

    def quietly(self, write: Callable[[], object]) -> None:
        """A change of the index alone: nothing that the journal would have to know."""
        self._check_not_behind()
        self.index.begin()
        write()
        self._carried_out()


def _said(error: OSError) -> str:
    return error.strerror or str(error)
