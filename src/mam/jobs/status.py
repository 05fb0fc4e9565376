"""The six words for where a job is, and the moves between them."""

from __future__ import annotations

from enum import StrEnum

from mam.errors import IllegalMove, UnknownStatus


class Status(StrEnum):
    PENDING = "pending"
    """May be claimed now."""

    WAITING = "waiting"
    """May be claimed once something holds: a retry's back-off, a usage limit's reset, a start time, another job."""

    RUNNING = "running"
    """Claimed: somebody holds a lease on it."""

    COMPLETED = "completed"
    """Done, and what was expected was there."""

    ERROR = "error"
    """Failed for good, with a reason."""

    CANCELLED = "cancelled"
    """Called off."""

    __hash__ = str.__hash__  # the base class would call Python for it, at every look into a set

    ended: bool  # whether there is no way out of it; a sentence below it would make it a status in the reference


PENDING, WAITING, RUNNING = Status.PENDING, Status.WAITING, Status.RUNNING
COMPLETED, ERROR, CANCELLED = Status.COMPLETED, Status.ERROR, Status.CANCELLED

ENDED = frozenset({COMPLETED, ERROR, CANCELLED})
for _status in Status:
    _status.ended = _status in ENDED

MOVES: dict[Status, frozenset[Status]] = {
    PENDING: frozenset({RUNNING, WAITING, ERROR, CANCELLED}),
    WAITING: frozenset({PENDING, ERROR, CANCELLED}),
    RUNNING: frozenset({COMPLETED, ERROR, WAITING, PENDING, CANCELLED}),
    COMPLETED: frozenset(),
    ERROR: frozenset(),
    CANCELLED: frozenset(),
}


def check_move(job_id: str, status: Status, to: Status) -> None:
    """The one rule about transitions; every change of a status asks it."""
    if to not in MOVES[status]:
        raise IllegalMove(job=job_id, status=status, to=to)


def parse_status(word: str) -> Status:
    try:
        return Status(word)
    except ValueError:
        raise UnknownStatus(word=repr(word), choices=", ".join(Status)) from None


def in_words(ended: Status) -> str:
    """How it ended, as the rest of a sentence."""
    return {ERROR: "ended in error", CANCELLED: "was cancelled"}.get(ended, ended.value)
