"""Remembers the last entries of the journal that this process has read, and notices that the journal lost some.

A standby that follows asynchronously may lack the last entries when it takes over, and a backup lacks them too. The
numbers of lost entries are used again, so a follower that continued at its number would miss entries or wait for ever.
An offset therefore names how many losses its reader knew: `120@0`, then `118@1`. An older offset is moved back to the
last entry that both journals have. A plain number, as of a saved position, is one of the journal as it is now.
"""

from __future__ import annotations

from zlib import crc32

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Read = Callable[[int, int], list[Any]]
    """The rows of the journal after one number and up to another."""

LENGTH = 250


class JournalMemory:
    def __init__(self) -> None:
        self._marks: dict[int, int] = {}
        """A checksum of each of the last entries."""
        self._forks: list[int] = []
        """The last common entry of each loss."""

    def offset(self, number: int) -> str:
        return f"{number}@{len(self._forks)}"

    def number(self, offset: str | None) -> int:
        number, _, losses = (offset or "0").partition("@")
        forks = self._forks[int(losses) :] if losses else []
        return min([int(number), *forks])

    def note(self, number: int, job_id: str, lines: str) -> None:
        self._marks[number] = _mark(job_id, lines)
        if len(self._marks) > 2 * LENGTH:
            self._marks = dict(list(self._marks.items())[-LENGTH:])

    def forget_before(self, number: int) -> None:
        """A prune may have summarised the entries before this number."""
        self._marks = {kept: mark for kept, mark in self._marks.items() if kept >= number}

    def lost_after(self, read: Read) -> int | None:
        """The last entry that the journal still has, if it lost entries; None otherwise."""
        if not self._marks:
            return None
        last = max(self._marks)
        if self._kept(read(last - 1, last)):
            return None
        first = min(self._marks) - 1
        fork = max([first, *self._kept(read(first, last))])
        self._marks = {number: mark for number, mark in self._marks.items() if number <= fork}
        self._forks.append(fork)
        return fork

    def _kept(self, rows: list[Any]) -> list[int]:
        return [number for number, job_id, _fields, lines in rows if self._marks.get(number) == _mark(job_id, lines)]


def _mark(job_id: str, lines: str) -> int:
    return crc32(f"{job_id} {lines}".encode())
