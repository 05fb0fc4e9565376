"""Everything that a worker writes gives its attempt and its claim id."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mam.errors import ClaimLost
from mam.jobs.worker_acts import Ending
from mam.registry import Registry
from mam.stores.memory import MemoryStore
from mam.testing.conformance.base import snapshot
from mam.work.claim import Holding
from tests.work.doors import held_job, unchanged_but

if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.jobs.record import Job

WRITES: dict[str, Callable[[Holding], Job]] = {
    "renew": lambda holding: holding.renew(60, heard=True),
    "started": lambda holding: holding.started({}),
    "progress": lambda holding: holding.progress("half", {}),
    "limited": lambda holding: holding.limited(0, "limit", {}),
    "quiet": lambda holding: holding.quiet(60),
    "finish": lambda holding: holding.finish(Ending(run={})),
    "finish what has just begun": lambda holding: holding.finish(Ending(run={}), {}),
    "finish for now": lambda holding: holding.finish(
        Ending(run={}, reason="busy", retryable=True), only_if_unreported=True
    ),
    "postpone": lambda holding: holding.postpone("no such path", 60),
    "tell": lambda holding: holding.tell("progress", "half", {}),
    "hand back": lambda holding: holding.hand_back(),
    "hand back what has just begun": lambda holding: holding.hand_back({}, {}),
}


@pytest.mark.parametrize("write", WRITES)
def test_a_write_counts_only_under_the_claim_that_the_worker_got(write: str) -> None:
    registry = Registry(MemoryStore())
    holding, job = Holding(registry, held_job(registry)), held_job(registry)
    stranger = Holding(registry, job)
    registry.act(job.job_id, "test", lambda found, now: unchanged_but(found, now, claim_id="another"))
    before = snapshot(registry.store)

    with pytest.raises(ClaimLost, match="another claim holds attempt 1"):
        WRITES[write](stranger)
    assert snapshot(registry.store) == before
    WRITES[write](holding)
    assert snapshot(registry.store) != before
