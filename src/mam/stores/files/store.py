"""The port, on files. Every operation takes the lock, catches up, and is then alone with the book."""

from __future__ import annotations

import os
from _thread import get_ident

from mam.errors import BadRecord, StoreDamaged, StoreUnavailable
from mam.jobs.pause import seconds_until_lifted
from mam.stores.beside import make_directories
from mam.stores.common import check_exclusive, matches, soonest
from mam.stores.files.alone import Alone
from mam.stores.files.book import Book
from mam.stores.files.claims import claim
from mam.stores.files.drafts import Step
from mam.stores.files.journal import ACTIVE, Place, parse_place
from mam.stores.files.pauses import read_pauses, ring, write_pauses
from mam.stores.files.registering import register
from mam.stores.port import Entry, Problem, Registration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from typing import Any

    from mam.jobs.change import Line
    from mam.jobs.generation import Generations
    from mam.jobs.pause import Pause
    from mam.jobs.record import Job
    from mam.stores.files.archive import Archive
    from mam.stores.files.mark import Mark
    from mam.stores.port import Act, Kept, Query, Request

BEGINNING = "0:0"


def create_files_store(path: str) -> bool:
    """Makes the directory of a registry if there is none; whether it made one."""
    return make_directories(os.path.abspath(path))


class FilesStore(Alone):
    """A registry in a directory of one host. Threads and processes may share it; a fork opens its own."""

    coming: Callable[[Entry], None] | None = None

    @property
    def journal_id(self) -> str:
        if self._book is None:
            return self._alone(lambda book: book.journal.journal_id)
        return self._book.journal.journal_id

    # -- changing --------------------------------------------------------------------------------------------------

    def register(self, draft: Job) -> Registration:
        return self._alone(lambda book: register(book, draft))

    def register_all(self, drafts: Sequence[Job]) -> list[Job]:
        from mam.stores.files.registering import register_all

        return self._alone(lambda book: register_all(book, drafts))

    def change(self, job_id: str, act: Act) -> Job:
        def do(book: Book) -> Job:
            job = book.load(job_id)
            change = act(job, self.clock.now())
            check_exclusive(job, change.job, book.index.gate.holder)
            book.commit([Step(before=job, change=change)])
            return change.job

        return self._alone(do)

    def claim(self, request: Request) -> Job | None:
        def do(book: Book) -> Job | None:
            if request.agent_id is not None and request.generation_id is not None:
                _announce(book, request.agent_id, request.generation_id)
            return claim(book, request)

        return self._alone(do)

    def announce(self, agent_id: str, generation_id: str) -> list[Job]:
        return self._alone(lambda book: _announce(book, agent_id, generation_id))

    def generations(self) -> dict[str, Generations]:
        from mam.stores.files.generations import read_generations

        return read_generations(self.home)

    def sweep(self) -> list[Job]:
        return self._alone(lambda book: book.settle(self.clock.now()))

    # -- reading ---------------------------------------------------------------------------------------------------

    def get(self, job_id: str) -> Job:
        return self._read(lambda book: book.load(job_id), lambda view: view.get(job_id))

    def ids_with_prefix(self, prefix: str, limit: int) -> list[str]:
        return self._read(
            lambda book: book.index.with_prefix(prefix, limit), lambda view: view.ids_with_prefix(prefix, limit)
        )

    def children(self, job_id: str) -> list[str]:
        return self._read(lambda book: book.index.children(job_id), lambda view: view.children(job_id))

    def select(self, query: Query) -> Iterator[Job]:
        """The ids are those of one moment; each record is read when its turn comes."""
        chosen = self._read(lambda book: book.index.select(query), lambda view: view.chosen(query), thoroughly=True)
        for job_id, number in chosen:
            try:
                job = self._records().read(job_id).job.replace(number=number)
            except FileNotFoundError:
                continue  # gone since
            except BadRecord as bad:
                self._note_bad(job_id, bad)
                continue
            if matches(query, job):
                yield job

    def ahead_of(self, job: Job) -> int:
        return self._read(
            lambda book: book.index.ahead(job.agent_session, job.priority, job.number),
            lambda view: view.ahead_of(job),
        )

    def newest(self, job_id: str) -> Job | None:
        return self._read(lambda book: book.newest(job_id), lambda view: view.newest(job_id))

    def holder(self, key: str) -> str | None:
        return self._read(lambda book: book.index.gate.holder(key), lambda view: view.holder(key))

    # -- pauses and secrets ----------------------------------------------------------------------------------------

    def pauses(self) -> list[Pause]:
        return read_pauses(self.home)

    def pause(self, pause: Pause) -> None:
        self._replace_pauses(pause.agent, pause.label, [pause])

    def resume(self, agent: str | None, label: str | None) -> bool:
        return self._replace_pauses(agent, label, [])

    def _replace_pauses(self, agent: str | None, label: str | None, now: list[Pause]) -> bool:
        def do(book: Book) -> bool:
            known = read_pauses(book.home)
            others = [one for one in known if (one.agent, one.label) != (agent, label)]
            if len(others) != len(known) or now:
                write_pauses(book.home, others + now)
            return len(others) != len(known)

        replaced = self._alone(do)
        ring(self.address)
        return replaced

    def keep_secrets(self, job_id: str, secrets: dict[str, str]) -> None:
        self._alone(lambda book: book.keep_secrets(job_id, secrets))

    def secrets(self, job_id: str) -> dict[str, str]:
        return self._alone(lambda book: book.secrets().of(job_id))

    # -- what is wrong ---------------------------------------------------------------------------------------------

    def problems(self) -> list[Problem]:
        return self._read(lambda book: book.problems_told(), lambda view: view.problems())

    def compare_index(self, after: str, limit: int) -> tuple[list[str], str | None]:
        """Where index and records differ, for a page of jobs; and where the next page begins, None at the end."""
        from mam.stores.files.comparing import compared

        return self._alone(lambda book: compared(book, after, limit))

    def events(self, job_id: str) -> list[Line]:
        return self._read(lambda book: _events(book, job_id), lambda view: view.events(job_id))

    def compare_events(self) -> list[Problem]:
        """Event logs that differ from the journal, and where."""
        from mam.stores.files.event_damage import differing

        return self._alone(differing)

    def mend_events(self, job_id: str) -> None:
        """Makes the log of a job anew from the journal; the old one is put aside."""
        from mam.stores.files.event_damage import mend

        self._alone(lambda book: mend(book, job_id))

    # -- the archive, imported by those who use it -------------------------------------------------------------------

    def archive(self, job_ids: Sequence[str]) -> list[str]:
        from mam.stores.files.archiving import archive

        return self._alone(lambda book: archive(book, job_ids))

    def archived(self, job_id: str) -> Kept | None:
        with self._archive() as archive:
            return None if self._is_live(job_id) else archive.get(job_id)

    def archived_with_prefix(self, prefix: str, limit: int) -> list[str]:
        with self._archive() as archive:
            return archive.with_prefix(prefix, limit)

    def archive_contents(self, *, newest_first: bool = False) -> Iterator[Kept]:
        with self._archive() as archive:
            for kept in archive.contents(newest_first=newest_first):
                if not self._is_live(kept.job.job_id):
                    yield kept

    def _is_live(self, job_id: str) -> bool:
        """Whoever moved it may have been killed when it was in both places; then it has not been moved."""
        return self._records().exists(job_id)

    def take_in(self, batch: Sequence[Kept], *, archived: bool = False) -> None:
        from mam.stores.files.archiving import take_in

        self._alone(lambda book: take_in(book, batch, archived=archived))

    def _archive(self) -> Archive:
        from mam.stores.files.archive import Archive

        return Archive(self.home)

    # -- the journal -----------------------------------------------------------------------------------------------

    def end(self) -> str:
        return self._read(lambda book: str(book.journal.end()), lambda _view: BEGINNING)

    def entries(self, cursor: str | None) -> Iterator[Entry]:
        """Reads up to where the journal is known to be durable: by its mark, or else by the lock. What this thread was
        woken for is given before there is another look, which then is not worth the lock."""
        begin, _, taken = (cursor or BEGINNING).partition("+")
        place, skip = parse_place(begin), int(taken or 0)
        heard = self._heard.pop(get_ident(), None)
        is_woken = heard is not None and heard.first == place.first and 0 < place.offset < heard.offset
        if heard is not None and is_woken:
            place, skip = (yield from self._between(place, skip, _place_of(heard))), 0
        mark = self._mark()
        if mark is not None:
            yield from self._between(place, skip, _place_of(mark))
        elif not is_woken:
            end = parse_place(self.end())
            self._opened()
            yield from self._between(place, skip, end)

    def _between(self, place: Place, skip: int, end: Place) -> Generator[Entry, None, Place]:
        """All but the first few; comes back with the place behind them."""
        if place == end:
            return place
        book = self._book or self._opened()
        for frame, behind in book.journal.read(place, end, self._note_damage):
            yield from _told(frame, place, behind)[skip:]
            place, skip = behind, 0
        return place

    def wait(self, cursor: str, timeout: float) -> bool:
        self._notice_fork()
        from mam.stores.files.following import await_news, open_watch

        watch = self._watches.get(get_ident())
        if watch is None or watch.is_over:
            before = None if self.coming is None else os.path.join(self.home, ACTIVE)
            self._watches[get_ident()] = open_watch(self.address, self.home, before)
            if watch is not None:
                watch.close()
            return True  # something may have happened before the watch began: look once more
        return await_news(watch, cursor, timeout, self._hear, self.end, lambda: self._foresee(cursor))

    def _hear(self) -> Mark | None:
        mark = self._mark()
        if mark is not None:
            self._heard[get_ident()] = mark
        return mark

    def _foresee(self, cursor: str) -> None:
        if self.coming is None or self._book is None or "+" in cursor:
            return
        place = parse_place(cursor)
        for frame, behind in self._book.journal.foreseen(place):
            for entry in _told(frame, place, behind):
                self.coming(entry)
            place = behind

    def _mark(self) -> Mark | None:
        """Where the journal ends, if that can be told without the lock, and nobody but mam has been here since."""
        self._notice_fork()
        mark = None if self._book is None else self._book.journal.marked()
        shown_ns = None if mark is None else self._directory.shown_ns()
        return mark if mark is not None and shown_ns is not None and mark.is_of(shown_ns) else None

    def due_in(self) -> float | None:
        moment = self.clock.now()
        due_ms = self._alone(lambda book: book.index.due_in_ms(moment))
        return soonest(None if due_ms is None else due_ms / 1000, seconds_until_lifted(self.pauses(), moment))

    # -- what a look finds ------------------------------------------------------------------------------------------

    def _note_bad(self, job_id: str, bad: BadRecord) -> None:
        """For `problems` to tell, unless the store cannot be written."""
        try:
            self._alone(lambda book: book.note_bad(job_id, bad))
        except StoreUnavailable:
            pass

    def _note_damage(self, damage: StoreDamaged) -> None:
        """A follower wants what can still be read; `problems` tells of the rest."""
        try:
            self._alone(lambda book: book.note_damage(damage))
        except StoreUnavailable:
            pass


def _place_of(mark: Mark) -> Place:
    return Place.of({"first": mark.first, "offset": mark.offset})


def _told(frame: list[dict[str, Any]], place: Place, behind: Place) -> list[Entry]:
    """The entries between two places."""
    return [
        Entry.of(
            {
                "cursor": str(behind) if rank == len(frame) else f"{place}+{rank}",
                "number": entry["number"],
                "job_id": entry["job_id"],
                "fields": entry["fields"],
                "lines": tuple(entry["lines"]),
            }
        )
        for rank, entry in enumerate(frame, start=1)
    ]


def _events(book: Book, job_id: str) -> list[Line]:
    from mam.stores.files.event_damage import sound_events

    return sound_events(book, job_id)


def _announce(book: Book, agent_id: str, generation_id: str) -> list[Job]:
    from mam.stores.files.generations import announce

    return announce(book, agent_id, generation_id)
