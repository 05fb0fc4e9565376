"""The six statuses of a job, and the legal transitions between them."""

from __future__ import annotations

from enum import StrEnum

from mam.errors import IllegalMove, UnknownStatus


class Status(StrEnum):
    PENDING = "pending"
    """Can be claimed now."""

    WAITING = "waiting"
    """Can be claimed after a retry's back-off, a usage limit's reset, a start time, or the end of another job."""

    RUNNING = "running"
    """Claimed: a worker holds a lease on it."""

    COMPLETED = "completed"
    """Finished, and everything that was expected was present."""

    ERROR = "error"
    """Failed permanently, with a reason."""

    CANCELLED = "cancelled"
    """Cancelled by a user, or because a dependency failed."""

    __hash__ = str.__hash__  # the base class's __hash__ is slow Python code

    ended: bool  # whether the status is final; a docstring here would appear as a status in the reference


PENDING, WAITING, RUNNING = Status.PENDING, Status.WAITING, Status.RUNNING
COMPLETED, ERROR, CANCELLED = Status.COMPLETED, Status.ERROR, Status.CANCELLED

OPEN = frozenset({PENDING, WAITING, RUNNING})
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
    """The one rule for transitions; every change of a status calls it."""
    if to not in MOVES[status]:
        raise IllegalMove(job=job_id, status=status, to=to)


_OTHER_WORDS = {
    "failed": ERROR, "failure": ERROR, "done": COMPLETED, "succeeded": COMPLETED, "success": COMPLETED,
    "finished": COMPLETED, "canceled": CANCELLED, "queued": PENDING, "active": RUNNING,
}  # fmt: skip


def parse_status(word: str) -> Status:
    try:
        return Status(word)
    except ValueError:
        meant = _OTHER_WORDS.get(word.lower())
        hint = "" if meant is None else f" (did you mean {meant}?)"
        raise UnknownStatus(word=repr(word), hint=hint, choices=", ".join(Status)) from None


def in_words(ended: Status) -> str:
    """How a job ended, as the predicate of a sentence."""
    return {ERROR: "ended in error", CANCELLED: "was cancelled"}.get(ended, ended.value)
