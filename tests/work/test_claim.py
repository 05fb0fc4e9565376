"""Every write of a worker carries its attempt and its claim id."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mam.errors import ClaimLost
from mam.jobs.worker_acts import Ending
from mam.registry import Registry
from mam.stores.memory import MemoryStore
from mam.testing.conformance.base import snapshot
from mam.work.claim import Claim
from tests.work.doors import held_job, unchanged_but

if TYPE_CHECKING:
    from collections.abc import Callable


WRITES: dict[str, Callable[[Claim], object]] = {
    "renew": lambda claim: claim.renew(60, heard=True),
    "started": lambda claim: claim.started({}),
    "progress": lambda claim: claim.progress("half", {}),
    "limited": lambda claim: claim.limited(0, "limit", {}),
    "quiet": lambda claim: claim.quiet(60),
    "finish": lambda claim: claim.finish(Ending(run={})),
    "finish what has just begun": lambda claim: claim.finish(Ending(run={}), {}),
    "finish for now": lambda claim: claim.finish(
        Ending(run={}, reason="busy", retryable=True), only_if_unreported=True
    ),
    "postpone": lambda claim: claim.postpone("no such path", 60),
    "publish": lambda claim: claim.publish("progress", "half", {}),
    "hand back": lambda claim: claim.hand_back(),
    "hand back what has just begun": lambda claim: claim.hand_back({}, {}),
}


@pytest.mark.parametrize("write", WRITES)
def test_a_write_counts_only_under_the_claim_that_the_worker_got(write: str) -> None:
    registry = Registry(MemoryStore())
    claim, job = Claim(registry, held_job(registry)), held_job(registry)
    stranger = Claim(registry, job)
    registry.act(job.job_id, "test", lambda found, now: unchanged_but(found, now, claim_id="another"))
    before = snapshot(registry.store)

    with pytest.raises(ClaimLost, match="another claim holds attempt 1"):
        WRITES[write](stranger)
    assert snapshot(registry.store) == before
    WRITES[write](claim)
    assert snapshot(registry.store) != before
