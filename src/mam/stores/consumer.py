"""A named follower of the journal: it handles each entry at least once, in order, and the store saves its position.

    read an entry -> handle it -> `done` moves the position after it -> the position is saved now and then

After a kill, a consumer handles the entries again that came after its last saved position. The position names the
journal and the last entry: in a rebuilt journal, or one restored from a backup, the consumer starts over.
"""

from __future__ import annotations

import time
from zlib import crc32

from mam.stores.port import Query
from mam.util.encoding import to_json_text, to_log_bytes
from mam.util.frozen import Frozen
from mam.util.strict_json import safe_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    from mam.jobs.record import Job
    from mam.stores.port import Entry, Store

    class PositionStore(Protocol):
        """Where positions are saved: in the store, or in a database that changes together with the position."""

        def position(self, consumer: str) -> str | None: ...

        def save_position(self, consumer: str, position: str) -> None: ...


SAVE_SECONDS, SAVE_ENTRIES = 1.0, 1000
"""A position is saved after this time, or after this many entries."""


class Position(Frozen):
    """The position after one entry of one journal."""

    epoch: str
    """The journal's id."""
    number: int = 0
    """The entry's number; 0 at the beginning."""
    mark: int = 0
    """A checksum of the entry: a journal that was restored from a backup uses numbers a second time."""
    summarised: int = 0
    """Up to where the journal was summarised when the consumer began to read."""

    def is_lost(self, summarised_upto: int) -> bool:
        """Whether entries after the position were summarised since, together with some before it."""
        return 0 < self.number < summarised_upto and self.summarised < summarised_upto

    def is_after(self, entry: Entry) -> bool:
        return (self.number, self.mark) == (entry.number, entry_checksum(entry))


def position_after(entry: Entry, epoch: str) -> Position:
    return Position(epoch=epoch, number=entry.number, mark=entry_checksum(entry))


def entry_checksum(entry: Entry) -> int:
    return crc32(to_log_bytes([entry.job_id, entry.lines]))


def entries_after(store: Store, at: Position) -> Iterator[Entry] | None:
    """The entries after a position; None when the journal does not have the entry before it."""
    if not at.number:
        return iter(store.entries(None))
    entries = iter(store.entries(str(at.number - 1)))
    return entries if _first_if_at(entries, at) is not None else None


def _first_if_at(entries: Iterator[Entry], at: Position) -> Entry | None:
    """The first entry, if it is the one of the position."""
    first = next(entries, None)
    return first if first is not None and at.is_after(first) else None


class Snapshot(Frozen):
    """The jobs as they are, for a reader that cannot read all that came before."""

    offset: str
    """Every change that a job lacks comes after this offset; some that it has may come again."""
    jobs: Iterator[Job]


def take_snapshot(store: Store) -> Snapshot:
    """The offset is read before the jobs."""
    return Snapshot(offset=store.end_offset(), jobs=store.select(Query()))


class Consumer:
    """`load` it, handle each of `entries` and call `done`, `save` at the end. Not for two threads at once."""

    def __init__(self, store: Store, name: str, positions: PositionStore | None = None) -> None:
        self._store = store
        self._name = name
        self._positions: PositionStore = positions if positions is not None else store
        self._saved = ""
        self._unsaved = 0
        self._saved_at = 0.0
        self._last: Entry | None = None
        self._offset: str | None = None
        self.at = Position(epoch="")
        self._summarised = 0
        self.count = 0
        """A counter of the consumer's own, saved with the position."""
        self.is_new = self.starts_over = self.is_lost = False
        """Whether `load` found no position, one that this journal does not have, or one whose next entries were
        summarised, because the consumer was silent for longer than the retention. A lost consumer starts over, or takes
        a snapshot and calls `go_on_after`."""
        self.lost_at = 0
        """The number of the last entry that a lost consumer has handled."""

    def load(self) -> None:
        """Reads the saved position."""
        epoch = self._store.journal_id
        saved = self._positions.position(self._name)
        found = parse_position(saved)
        self.at, self.count = found if found is not None else (Position(epoch=epoch), 0)
        is_known = self.at.epoch == epoch
        summarised = self._store.summarised_upto()
        self.is_lost = is_known and self.at.is_lost(summarised)
        last = self._last_handled() if is_known and not self.is_lost else None
        holds = last is not None or (is_known and not self.at.number)
        self.is_new = saved is None
        self.starts_over = saved is not None and (found is None or not holds)
        if self.is_lost:
            self.lost_at = self.at.number  # and the position stays, until an entry or a snapshot is handled
        elif not holds:
            self.at = Position(epoch=epoch)
        self._summarised = summarised
        self._saved, self._unsaved, self._last, self._saved_at = saved or "", 0, None, time.monotonic()
        self._offset = last.offset if last is not None else None

    def _last_handled(self) -> Entry | None:
        """The entry of the position; None when the journal does not have it."""
        return _first_if_at(iter(self._store.entries(str(self.at.number - 1))), self.at) if self.at.number else None

    @property
    def offset(self) -> str | None:
        """The offset to read on from; None at the beginning."""
        return self._offset

    def entries(self) -> Iterator[Entry]:
        """The entries after the position, to the current end of the journal."""
        return self._store.entries(self.offset)

    def done(self, entry: Entry, count: int = 0) -> None:
        """This entry and all before it are handled."""
        self._last, self._offset = entry, entry.offset  # its checksum is computed when it is saved
        self._unsaved += 1
        self.count += count

    @property
    def due_in(self) -> float | None:
        """Seconds until the position has to be saved; None when it is saved."""
        if not self._unsaved:
            return None
        left = self._saved_at + SAVE_SECONDS - time.monotonic()
        return 0.0 if self._unsaved >= SAVE_ENTRIES else max(0.0, left)

    def save_if_due(self) -> None:
        if self.due_in == 0:
            self.save()

    def save(self) -> None:
        """If this raises, the next consumer handles some entries again."""
        self._saved_at = time.monotonic()
        if self._last is not None:
            self.at = position_after(self._last, self.at.epoch).replace(summarised=self._summarised)
        self._last, self._unsaved = None, 0
        text = to_json_text({**self.at.as_dict(), "count": self.count})
        if text != self._saved and self.at.epoch:
            self._positions.save_position(self._name, text)
            self._saved = text

    def skip_to_end(self) -> None:
        """Marks everything that is in the journal now as handled."""
        self.load()
        self.go_on_after(self._store.end_offset())

    def go_on_after(self, offset: str) -> None:
        """Everything up to this offset is handled, as by a snapshot, and saved as such."""
        number = int(offset.partition("@")[0])
        for entry in self._store.entries(str(number - 1)) if number else ():
            self.done(entry)
            break
        self.save()
        self.is_lost = self.starts_over = False


def parse_position(text: str | None) -> tuple[Position, int] | None:
    """The position and the consumer's count; None for text that mam did not write."""
    try:
        found = safe_json(text or "")
        count = found.pop("count")
        at = Position(**found)
    except (ValueError, TypeError, AttributeError, KeyError):
        return None
    numbers = (at.number, at.mark, at.summarised, count)
    are_numbers = all(type(value) is int and 0 <= value < 1 << 63 for value in numbers)
    return (at, count) if are_numbers and isinstance(at.epoch, str) else None
