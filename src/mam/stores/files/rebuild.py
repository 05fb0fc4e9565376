"""A missing, damaged or foreign index is made anew: what mam knew comes from the journal, what is there from the files.

The journal, read from its beginning, says how mam left each record. A file that says otherwise was written by somebody
else since, and is judged by that knowledge as ever: the fence does not depend on a cache.
"""

from __future__ import annotations

from mam.errors import BadRecord, StoreDamaged
from mam.jobs.record import parse_job
from mam.stores.files.book import Book
from mam.stores.files.directory import UNKNOWN
from mam.stores.files.index import NO_STAMP, Applied, digest
from mam.stores.files.journal import ACTIVE, Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Json
    from mam.stores.files.records import Found


class _History:
    """The journal, folded."""

    def __init__(self, book: Book) -> None:
        self.told: dict[str, Json] = {}
        self.damages: list[StoreDamaged] = []
        self.last_entry = self.highest_number = 0
        # Only the last act can be unfinished, since every holder first finishes the one before it; so the journal
        # counts as applied up to the last frame, which is then carried out again.
        self.place = before_last = Place(first=book.journal.segments()[0][0], offset=0)
        before: dict[str, Json | None] = {}
        for entries, behind in book.journal.read(self.place, book.journal.end(), self.damages.append):
            before_last, self.place = self.place, behind
            self.last_entry = int(entries[-1]["number"])
            before = {entry["job_id"]: _copy(self.told.get(entry["job_id"])) for entry in entries}
            for entry in entries:
                self._fold(entry["job_id"], entry["fields"])
        if not self.damages and all(self._is_of_last_act(book, job_id, told) for job_id, told in before.items()):
            self.place = before_last

    def _is_of_last_act(self, book: Book, job_id: str, before: Json | None) -> bool:
        """Whether the file is as it was before the last act, or after it. One that is neither is newer than a journal
        that somebody has cut, and must not be taken back to what is left of that."""
        try:
            there = _as_told(book.records.read(job_id))
        except FileNotFoundError:
            return before is None
        except BadRecord:
            return True  # nobody touches it
        return any(told is not None and _agree(told, there) for told in (before, self.told.get(job_id)))

    def _fold(self, job_id: str, fields: Json | None) -> None:
        if fields is None:
            self.told.pop(job_id, None)
            return
        if "prompt" in fields:
            fields = {**fields, "prompt": digest(fields["prompt"])}
        self.told.setdefault(job_id, {}).update(fields)
        self.highest_number = max(self.highest_number, int(fields.get("number", 0)))


def index_from_records(book: Book) -> Applied:
    book.journal.cut_unfinished_line()
    history = _History(book)
    before = book.index.applied()
    book.index.clear()
    book.applied = Applied(
        journal_id=book.journal.journal_id,
        place=history.place,
        next_entry=history.last_entry + 1,
        next_number=history.highest_number + 1,
        directory_ns=UNKNOWN,
    )
    bad: list[tuple[str, BadRecord]] = []

    def put_all() -> None:
        for job_id, told in history.told.items():
            try:
                _put(book, told, book.records.read(job_id), trusted=not history.damages)
            except FileNotFoundError:
                continue
            except BadRecord as problem:
                bad.append((job_id, problem))

        book.index.weigh_anew()

    book.quietly(put_all)
    for job_id, problem in bad:
        book.note_bad(job_id, problem)
    for damage in history.damages:
        book.note_damage(damage)
    if before is not None and before.journal_id != book.journal.journal_id:
        book.note_problem(
            ACTIVE, "is not the journal that was here; the records are whole, some history is not", NO_STAMP
        )
    return book.applied


def _copy(told: Json | None) -> Json | None:
    return None if told is None else dict(told)


def _as_told(found: Found) -> Json:
    return {**found.job.to_json(), "prompt": digest(found.job.prompt)}


def _agree(told: Json, there: Json) -> bool:
    """An old record that was never rewritten has its number in the journal alone."""
    return all(there.get(name) == value for name, value in told.items() if name != "number")


def _put(book: Book, told: Json, found: Found, *, trusted: bool) -> None:
    """The row as mam left it. A file that is not so keeps a stamp that no file has, so that it is looked at next."""
    there = _as_told(found)
    if not trusted:
        known = {**told, **there, "number": told.get("number", found.job.number)}
    else:
        # A record that somebody else made was journalled only with what mam added to it.
        known = told if "prompt" in told else {**there, **told}
    job = parse_job(known, book.directory.path)
    same = {**there, "number": job.number} == {**job.to_json(), "prompt": known["prompt"]}
    book.index.put_state(job, known, found.stamp if same else NO_STAMP)
