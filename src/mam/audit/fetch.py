"""Reads the entries that the audit log lacks, before the log's lock is taken.

Reading may have to wait for the store, and the holder of the log's lock must not: a script that holds the registry's
lock would wait for the log while the log waits for the registry.
"""

from __future__ import annotations

from mam.audit.cursor import CursorRead
from mam.audit.log import takes_lines
from mam.jobs.input_rules import check_job_id
from mam.jobs.summary import line_origins
from mam.stores.consumer import entries_after
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.stores.consumer import Position
    from mam.stores.port import Entry, Store

ENTRIES_AT_ONCE = 1000
TEXT_AT_ONCE = 32 * 1024 * 1024
"""The most that one act copies, so that an act stays fast after a long gap of the log."""

FEW = 16
"""Up to this many entries with nothing to copy are read again rather than saved as seen."""

NOT_COPIED = frozenset({"renewed"})
"""Heartbeats would flood the history."""


class Batch(Frozen):
    epoch: str
    seen: Position
    """Where the copy was when this was read."""
    replaced: bool
    """Whether the journal has another entry there, or none: a registry was restored from a backup. Then this is the
    journal's beginning."""
    entries: list[Entry]
    reaches_end: bool
    mended: dict[str, list[Entry]]
    """What jobs lack whose directory could not be written for a while."""
    before_restart: int | None
    """The entry behind which the copy was when the machine went down: up to it nothing was left out, but lines may be
    lost."""

    @property
    def needs_writing(self) -> bool:
        """A heartbeat alone is not worth the lock."""
        return (
            self.replaced
            or bool(self.mended)
            or len(self.entries) > FEW
            or any(lines_to_copy(one) for one in self.entries)
        )

    def continues(self, at: Position) -> bool:
        """Whether the batch starts at, or contains, this position."""
        return at == self.seen or any(at.is_after(entry) for entry in self.entries if entry.number == at.number)


def fetch(logs_dir: str, store: Store) -> Batch:
    epoch = check_job_id(store.journal_id)
    cursor = CursorRead(logs_dir, epoch)
    following = entries_after(store, cursor.at)
    entries, reaches_end = _some(following if following is not None else store.entries(None))
    return Batch(
        epoch=epoch,
        seen=cursor.at,
        replaced=following is None,
        entries=entries,
        reaches_end=reaches_end,
        mended={
            job_id: [entry for entry in store.entries(str(number)) if entry.job_id == job_id]
            for job_id, number in cursor.behind.items()
            if takes_lines(logs_dir, job_id)
        },
        before_restart=cursor.before_restart,
    )


def lines_to_copy(entry: Entry) -> list[tuple[tuple[int, int], dict[str, object]]]:
    """The lines of an entry that belong in the history, each with the entry in which it was written and its index
    there."""
    origins = line_origins(entry.number, entry.fields, entry.lines)
    lines = zip(origins, entry.lines, strict=True)
    return [(origin, line) for origin, line in lines if line["event"] not in NOT_COPIED]


def _some(entries: Iterator[Entry]) -> tuple[list[Entry], bool]:
    """As many entries as one act may copy, and whether these are all."""
    found: list[Entry] = []
    weight = 0
    for entry in entries:
        if len(found) >= ENTRIES_AT_ONCE or weight > TEXT_AT_ONCE:
            return found, False
        found.append(entry)
        weight += len((entry.fields or {}).get("prompt", ""))
    return found, True
