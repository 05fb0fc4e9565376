"""The verdict on an attempt: what the worker writes about the job when the attempt is over."""

from __future__ import annotations

from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Json
    from mam.jobs.worker_acts import Ending

POSTPONED_SECONDS = 60.0


class GiveUp(Frozen):
    """The claim is gone: the worker writes nothing."""


class HandBack(Frozen):
    """The attempt was interrupted through no fault of the job, which becomes pending again."""

    run: Json


class HandBackUnstarted(Frozen):
    """This machine cannot run the job now; another worker may. No agent ran, so the record of the last run stays."""

    reason: str


class Postpone(Frozen):
    """The job waits, and is then tried again."""

    reason: str
    seconds: float = POSTPONED_SECONDS
    waiting_for: str = "place"


class WaitForReset(Frozen):
    """The job waits until the usage limit of its agent has ended."""

    run: Json
    text: str
    """The limit, as the agent reported it."""
    resets_at_ms: int | None
    has_answered: bool
    """Whether the model answered before it met the limit."""


class Finish(Frozen):
    """The job ends, or is retried if its ending is retryable."""

    ending: Ending
    only_if_unreported: bool = False
    """Whether the ending holds only if the agent has reported no outcome. An exit code decides without a read of the
    record; the write then finds out whether the agent has reported something."""


if TYPE_CHECKING:
    Verdict = GiveUp | HandBack | HandBackUnstarted | Postpone | WaitForReset | Finish
