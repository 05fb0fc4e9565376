"""What the journal has and the audit log lacks, read before the log's lock is taken.

Reading may have to wait for the store. Whoever holds the log's lock must not: a script that holds the registry's lock
and writes would then wait for the log while the log waits for the registry.
"""

from __future__ import annotations

from mam.audit.cursor import BEGINNING, Glimpse, mark_of, position_behind
from mam.audit.log import takes_lines
from mam.errors import MamError
from mam.frozen import Frozen
from mam.jobs.rules import check_job_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.audit.cursor import Position
    from mam.stores.port import Entry, Store

ENTRIES_AT_ONCE = 1000
TEXT_AT_ONCE = 32 * 1024 * 1024
"""What one act copies at most, so that no act pays for a long absence of the log, in time or in memory."""

FEW = 16
"""Entries with nothing to copy that are rather read again than written down as seen."""

NOT_COPIED = frozenset({"renewed"})
"""Heartbeats would flood the history and say nothing in it."""


class Step(Frozen):
    """One entry to copy, and where the copy stands when that is done."""

    entry: Entry
    at: Position


class Batch(Frozen):
    journal_id: str
    seen: Position
    """Where the copy stood when this was read."""
    replaced: bool
    """Whether the journal says something else there than it said, as that of a registry restored from a backup does;
    then this is its beginning."""
    steps: list[Step]
    reaches_end: bool
    mended: dict[str, list[Entry]]
    """What jobs lack whose directory could not be written for a while."""
    before_restart: Position | None
    """Where the copy stood when the machine went down: nothing was left out up to there, but some may not be there."""

    @property
    def needs_writing(self) -> bool:
        """A heartbeat alone is not worth the lock."""
        return (
            self.replaced
            or bool(self.mended)
            or len(self.steps) > FEW
            or any(copied_lines(step.entry) for step in self.steps)
        )


def fetch(logs_dir: str, store: Store) -> Batch:
    journal_id = check_job_id(store.journal_id)
    seen = Glimpse(logs_dir, journal_id)
    begin, entries = _entries_behind(store, seen.at)
    steps, reaches_end = _steps(store, begin, entries)
    return Batch(
        journal_id=journal_id,
        seen=seen.at,
        replaced=begin is not seen.at,
        steps=steps,
        reaches_end=reaches_end,
        mended={
            job_id: _entries_of(store, job_id, place)
            for job_id, place in seen.behind.items()
            if takes_lines(logs_dir, job_id)
        },
        before_restart=seen.before_restart,
    )


def copied_lines(entry: Entry) -> list[tuple[int, dict[str, object]]]:
    """The lines of an entry that belong into the history, each with its place in the entry."""
    return [(index, line) for index, line in enumerate(entry.lines) if line["event"] not in NOT_COPIED]


def _entries_behind(store: Store, at: Position) -> tuple[Position, Iterator[Entry]]:
    """What follows in the journal; all of it when the last entry that was copied is not there any more."""
    if at.mark is None:
        return at, store.entries(at.place)
    entries = store.entries(at.before)
    last = next(entries, None)
    if last is not None and mark_of(last) == at.mark:
        return at, entries
    return BEGINNING, store.entries(None)


def _steps(store: Store, begin: Position, entries: Iterator[Entry]) -> tuple[list[Step], bool]:
    """As many as one act may copy, and whether these are all."""
    steps: list[Step] = []
    weight = 0
    at = begin
    for entry in entries:
        if len(steps) >= ENTRIES_AT_ONCE or weight > TEXT_AT_ONCE:
            return steps, False
        at = position_behind(entry, at.place)
        steps.append(Step(entry=_completed(store, entry), at=at))
        weight += len((entry.fields or {}).get("prompt", ""))
    return steps, True


def _entries_of(store: Store, job_id: str, place: str | None) -> list[Entry]:
    return [_completed(store, entry) for entry in store.entries(place) if entry.job_id == job_id]


def _completed(store: Store, entry: Entry) -> Entry:
    """A record that came as a file has only its number in the journal; the rest is asked of the store."""
    if all(line["event"] != "registered" for line in entry.lines) or "prompt" in (entry.fields or {}):
        return entry
    try:
        return entry.replace(fields=store.get(entry.job_id).to_json())
    except MamError:
        return entry.replace(fields=None)  # gone or broken since; its lines still tell of it
