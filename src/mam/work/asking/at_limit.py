"""At a usage limit mam may ask a person what to do, instead of waiting for the reset by itself."""

from __future__ import annotations

from mam.jobs.question import LIMIT, Draft
from mam.jobs.usage_limit import end_of_limit
from mam.util.clock import iso_second
from mam.work.asking.port import ANSWER, WITHDRAWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.util.clock import Moment
    from mam.work.asking.port import Decision
    from mam.work.verdict import WaitForReset

WAIT, RETRY, FAIL = "wait", "retry", "fail"


def limit_draft(agent: str, limit: WaitForReset, now: Moment) -> Draft:
    """Without an answer, mam waits for the reset, as it would without asking."""
    until_ms = end_of_limit(limit.resets_at_ms, 0, now)
    known = "It resets at" if limit.resets_at_ms is not None else "When it resets is not known; mam would try at"
    text = (
        f"{agent} has met its usage limit: {limit.text}\n{known} {iso_second(until_ms)}.\n"
        f"{WAIT}: the job waits until then.\n{RETRY}: it goes on now, for example with another account.\n"
        f"{FAIL}: it ends in error."
    )
    seconds = max(1.0, (until_ms - now.wall_ms) / 1000)
    return Draft(kind=LIMIT, text=text, choices=(WAIT, RETRY, FAIL), default=WAIT, deadline_seconds=seconds)


def chosen(decision: Decision) -> str | None:
    """None if the attempt no longer needs an answer; a denial ends the job."""
    if decision.outcome == WITHDRAWN:
        return None
    return decision.text if decision.outcome == ANSWER else FAIL
