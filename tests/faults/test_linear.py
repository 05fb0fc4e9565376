"""The checker of histories accepts histories that are known to be correct and rejects those that are not."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from tests.faults.linearizability import EXISTS, LOST, REFUSED, UNKNOWN, Call, linearizable


def call(verb: str, asked: float, answered: float, answer: Any = None, attempt: int | None = None) -> Call:
    return Call(verb=verb, asked=asked, answered=answered, attempt=attempt, lease=10.0, answer=answer)


REGISTERED = call("register", 0, 1, ("pending", 0, 0))
CLAIMED = call("claim", 2, 3, ("running", 1, 0))

GOOD = {
    "nothing happened": [],
    "one life": [
        REGISTERED, CLAIMED, call("publish", 4, 5, ("running", 1, 1), 1),
        call("complete", 6, 7, ("completed", 1, 2), 1), call("get", 8, 9, ("completed", 1, 2)),
    ],
    "a reader before it was there": [call("get", 0, 5, UNKNOWN), REGISTERED],
    "two who register": [call("register", 0, 9, EXISTS), call("register", 0, 9, ("pending", 0, 0))],
    "two who claim at once, and one gets it": [REGISTERED, CLAIMED, call("claim", 2, 3, REFUSED)],
    "a reader overlaps a writer and sees the old": [REGISTERED, CLAIMED, call("get", 2.5, 4, ("pending", 0, 0))],
    "a reader overlaps a writer and sees the new": [REGISTERED, CLAIMED, call("get", 2, 2.5, ("running", 1, 0))],
    "taken over when the lease was over": [
        REGISTERED, CLAIMED, call("claim", 13, 14, ("running", 2, 0)), call("publish", 15, 16, LOST, 1),
    ],
    "late, and nobody had noticed": [REGISTERED, CLAIMED, call("complete", 50, 51, ("completed", 1, 1), 1)],
    "the same ending again": [
        REGISTERED, CLAIMED, call("complete", 4, 5, ("completed", 1, 1), 1),
        call("complete", 6, 7, ("completed", 1, 1), 1),
    ],
    "called off, and the holder hears of it": [
        REGISTERED, CLAIMED, call("cancel", 4, 5, ("cancelled", 1, 1)), call("complete", 6, 7, LOST, 1),
        call("cancel", 8, 9, ("cancelled", 1, 1)),
    ],
    "a renewal puts the end of the lease off": [
        REGISTERED, CLAIMED, call("heartbeat", 10, 11, ("running", 1, 0), 1), call("get", 18, 19, ("running", 1, 0)),
    ],
    "killed in a claim that happened": [
        REGISTERED, call("claim", 2, inf), call("get", 4, 5, ("running", 1, 0)),
    ],
    "killed in a claim that did not happen": [
        REGISTERED, call("claim", 2, inf), call("claim", 4, 5, ("running", 1, 0)),
    ],
    "killed in an act that happens late": [
        REGISTERED, CLAIMED, call("publish", 4, inf, attempt=1), call("get", 5, 6, ("running", 1, 0)),
        call("get", 7, 8, ("running", 1, 1)),
    ],
    "lost three times": [
        REGISTERED, CLAIMED, call("claim", 13, 14, ("running", 2, 0)), call("claim", 25, 26, ("running", 3, 0)),
        call("get", 40, 41, ("error", 3, 1)),
    ],
}  # fmt: skip

BAD = {
    "two claims of one attempt": [REGISTERED, CLAIMED, call("claim", 2, 3, ("running", 1, 0))],
    "a claim of a job that is held": [REGISTERED, CLAIMED, call("claim", 4, 5, ("running", 2, 0))],
    "acknowledged and lost": [REGISTERED, call("get", 2, 3, UNKNOWN)],
    "a claim that was forgotten": [REGISTERED, CLAIMED, call("get", 4, 5, ("pending", 0, 0))],
    "a number given twice": [
        REGISTERED, CLAIMED, call("publish", 4, 6, ("running", 1, 1), 1), call("publish", 5, 7, ("running", 1, 1), 1),
    ],
    "a number left out": [REGISTERED, CLAIMED, call("publish", 4, 5, ("running", 1, 2), 1)],
    "a late write that was accepted": [
        REGISTERED, CLAIMED, call("claim", 13, 14, ("running", 2, 0)), call("complete", 15, 16, ("completed", 1, 1), 1),
    ],
    "two attempts that both ended it": [
        REGISTERED, CLAIMED, call("claim", 13, 14, ("running", 2, 0)), call("complete", 15, 16, ("completed", 2, 1), 2),
        call("complete", 17, 18, ("completed", 2, 1), 1),
    ],
    "back from the dead": [
        REGISTERED, CLAIMED, call("complete", 4, 5, ("completed", 1, 1), 1), call("claim", 6, 7, ("running", 2, 1)),
    ],
    "taken over too early": [REGISTERED, CLAIMED, call("claim", 8, 9, ("running", 2, 0))],
    "taken over though it was renewed": [
        REGISTERED, CLAIMED, call("heartbeat", 10, 11, ("running", 1, 0), 1), call("claim", 18, 19, ("running", 2, 0)),
    ],
    "a reader that goes back in time": [
        REGISTERED, CLAIMED, call("get", 2.1, 2.2, ("running", 1, 0)), call("get", 2.3, 2.4, ("pending", 0, 0)),
    ],
    "made twice": [REGISTERED, call("register", 2, 3, ("pending", 0, 0))],
    "an act that happens before it was asked for": [
        REGISTERED, call("get", 2, 3, ("running", 1, 0)), call("claim", 4, inf),
    ],
    "an ending without a number": [REGISTERED, CLAIMED, call("cancel", 4, 5, ("cancelled", 1, 0))],
}  # fmt: skip


@pytest.mark.parametrize("history", GOOD)
def test_a_good_history_passes(history: str) -> None:
    assert linearizable(GOOD[history])


@pytest.mark.parametrize("history", BAD)
def test_a_bad_history_does_not(history: str) -> None:
    assert not linearizable(BAD[history])


def test_a_long_history_with_many_unanswered_calls_is_judged_in_time() -> None:
    unanswered = [call("publish", 4 + turn / 100, inf, attempt=1) for turn in range(12)]
    spoken = [call("publish", 5 + turn, 5.5 + turn, ("running", 1, turn + 1), 1) for turn in range(4)]
    renewed = [call("heartbeat", 4 + turn, 4.1 + turn, ("running", 1, 0), 1) for turn in range(1)]
    assert linearizable([REGISTERED, CLAIMED, *renewed, *unanswered, *spoken])
