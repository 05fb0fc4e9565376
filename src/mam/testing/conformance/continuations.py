"""Continuations: who may claim them, when, and in which order."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from mam.errors import Refused
from mam.jobs import acts
from mam.jobs.continuation import bound_host
from mam.jobs.status import Status
from mam.registry import Registry
from mam.stores.port import ClaimRequest
from mam.testing import tasks
from mam.testing.conformance.base import StoreCase, check_journal, job_in_status, register_and_claim, register_jobs
from mam.testing.tasks import LABEL

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mam.jobs.record import Job
    from mam.stores.port import Store
    from mam.testing.clock import FakeClock
    from mam.testing.races import RacePool

HERE, ELSEWHERE = "alpha", "beta"
RACERS = 6


class Continuations(StoreCase):
    def test_only_the_host_of_the_conversation_claims_it(self, registry: Registry, store: Store) -> None:
        old = ended_conversation(registry)
        new = continued(registry, old)
        assert new.conversation == {
            "job": old.job_id, "host": HERE, "place": "/work", "branch": None, "agent": old.agent, "session": "talk-1",
            "live": None,
        }  # fmt: skip

        assert claim_on(store, ELSEWHERE) is None
        assert claim_on(store, "") is None
        assert store.claim(ClaimRequest(label=LABEL, owner="w", host=ELSEWHERE, job_id=new.job_id)) is None
        assert claim_on(store, HERE) == new.job_id
        check_journal(store)

    def test_a_host_passes_over_what_is_not_its_own(self, registry: Registry, store: Store) -> None:
        bound = continued(registry, ended_conversation(registry), priority=9)
        (free,) = register_jobs(registry)

        assert [claim_on(store, ELSEWHERE) for _ in range(2)] == [free, None]
        assert claim_on(store, HERE) == bound.job_id

    def test_one_that_is_bound_elsewhere_keeps_no_other_of_its_key_back(self, registry: Registry, store: Store) -> None:
        bound = continued(registry, ended_conversation(registry, exclusive="gpu"))
        assert bound.exclusive == "gpu"
        first, second = register_jobs(registry, 2, exclusive="gpu")

        assert claim_on(store, ELSEWHERE) == first
        assert claim_on(store, HERE) is None
        registry.complete(first)
        assert claim_on(store, HERE) == bound.job_id
        assert claim_on(store, ELSEWHERE) is None
        registry.complete(bound.job_id)
        assert claim_on(store, ELSEWHERE) == second
        check_journal(store)

    @pytest.mark.parametrize("end", ["complete", "fail", "cancel"])
    def test_it_starts_when_the_job_before_has_ended_with_any_outcome(
        self, registry: Registry, store: Store, end: str
    ) -> None:
        old = running_conversation(registry)
        new = continued(registry, old)
        assert (new.status, new.continues, bound_host(new)) == (Status.WAITING, old.job_id, HERE)
        assert claim_on(store, HERE) is None

        ways: dict[str, Callable[[], Job]] = {
            "complete": lambda: registry.complete(old.job_id),
            "fail": lambda: registry.fail(old.job_id, reason="no"),
            "cancel": lambda: registry.cancel(old.job_id),
        }
        ways[end]()

        assert claim_on(store, ELSEWHERE) is None
        assert claim_on(store, HERE) == new.job_id
        check_journal(store)

    def test_the_conversation_of_a_job_that_began_later_is_known_at_its_end(
        self, registry: Registry, store: Store
    ) -> None:
        old = register_and_claim(registry)
        new = continued(registry, old)
        assert new.conversation is None
        begin_conversation(registry, old, session="talk-9")
        registry.complete(old.job_id)

        assert claim_on(store, ELSEWHERE) is None
        assert claim_on(store, HERE) == new.job_id
        assert (store.get(new.job_id).conversation or {})["session"] == "talk-9"

    def test_a_retry_of_the_job_before_holds_it_back_too(
        self, registry: Registry, store: Store, clock: FakeClock
    ) -> None:
        old = running_conversation(registry)
        new = continued(registry, old)
        registry.fail(old.job_id, reason="flaky", retryable=True)
        assert claim_on(store, HERE) is None
        clock.advance(3600)
        assert claim_on(store, HERE) == old.job_id
        registry.complete(old.job_id)
        assert claim_on(store, HERE) == new.job_id

    def test_a_chain_keeps_its_order_whatever_the_priorities(self, registry: Registry, store: Store) -> None:
        old = running_conversation(registry)
        second = continued(registry, old)
        third = continued(registry, old, priority=9)
        assert (second.continues, third.continues) == (old.job_id, second.job_id)

        order = []
        registry.complete(old.job_id)
        while (job_id := claim_on(store, HERE)) is not None:
            order.append(job_id)
            assert claim_on(store, HERE) is None, "one job of a conversation runs at a time"
            registry.complete(job_id)
        assert order == [second.job_id, third.job_id]

    def test_a_cancelled_link_does_not_let_the_next_overtake_the_first(self, registry: Registry, store: Store) -> None:
        old = running_conversation(registry)
        second, third = continued(registry, old), continued(registry, old)
        registry.cancel(second.job_id)
        fourth = continued(registry, old)
        assert claim_on(store, HERE) is None

        registry.complete(old.job_id)
        assert claim_on(store, HERE) == third.job_id
        assert (store.get(third.job_id).conversation or {})["session"] == "talk-1"
        assert claim_on(store, HERE) is None
        registry.complete(third.job_id)
        assert claim_on(store, HERE) == fourth.job_id

    def test_jobs_of_one_conversation_share_a_key_and_a_workspace(self, registry: Registry) -> None:
        old = ended_conversation(registry)
        second = continued(registry, old)
        third = continued(registry, second)
        assert second.exclusive == third.exclusive == f"conversation/{old.job_id}"
        assert second.directory_of == third.directory_of == old.job_id

    def test_it_inherits_neither_artifacts_nor_validation(self, registry: Registry) -> None:
        old = ended_conversation(registry, artifacts=["a.md"], validation={"script": "check.sh"}, timeout_sec=77)
        new = continued(registry, old, artifacts=["b.md"])
        assert (new.expected_artifacts, new.validation, new.timeout_sec) == (["b.md"], None, 77)
        assert (new.agent, new.agent_session) == (old.agent, old.agent_session)

    @pytest.mark.parametrize("status", ["completed", "error", "cancelled"])
    def test_a_job_whose_conversation_never_began_cannot_be_continued(self, registry: Registry, status: str) -> None:
        old = job_in_status(registry, status)
        with pytest.raises(Refused, match="no conversation to continue"):
            continued(registry, old)

    def test_it_cannot_be_made_pending_by_hand_before_its_turn(self, registry: Registry) -> None:
        new = continued(registry, running_conversation(registry))
        with pytest.raises(Refused, match="has not ended"):
            registry.set_status(new.job_id, Status.PENDING)

    def test_a_repeat_with_the_same_key_is_the_same_job(self, registry: Registry) -> None:
        old = ended_conversation(registry)
        first = registry.continue_job(old.job_id, prompt="more", key="k1")
        again = registry.continue_job(old.job_id, prompt="more", key="k1")
        assert (first.created, again.created, again.job.job_id) == (True, False, first.job.job_id)

    def test_one_in_the_archive_is_still_a_link_of_its_chain(self, registry: Registry, store: Store) -> None:
        old = ended_conversation(registry)
        second = continued(registry, old)
        assert claim_on(store, HERE) == second.job_id
        begin_conversation(registry, store.get(second.job_id), session="talk-2")
        registry.complete(second.job_id)
        register_jobs(registry)
        assert registry.archive([old.job_id, second.job_id]) == [old.job_id, second.job_id]

        third = continued(registry, old)
        assert (third.continues, (third.conversation or {})["session"]) == (second.job_id, "talk-2")

    def test_continuations_at_once_are_one_chain(self, live: Store, pool: RacePool) -> None:
        old = ended_conversation(Registry(live))

        got = pool.race([partial(tasks.continuation_of, job_id=old.job_id)] * RACERS)

        links = {str(live.get(job_id).continues): job_id for job_id in got}
        chain = [old.job_id]
        while chain[-1] in links:
            chain.append(links[chain[-1]])
        assert sorted(chain[1:]) == sorted(got)
        order = []
        while (job_id := claim_on(live, HERE)) is not None:
            order.append(job_id)
            Registry(live).complete(job_id)
        assert order == chain[1:]
        check_journal(live)


def running_conversation(registry: Registry, session: str = "talk-1", **choices: Any) -> Job:
    job = register_and_claim(registry, **choices)
    return begin_conversation(registry, job, session=session)


def begin_conversation(registry: Registry, job: Job, session: str) -> Job:
    """The agent has begun, on `HERE`."""
    run = {"host": HERE, "place": "/work", "agent": {"name": job.agent, "session": session}}
    return registry.act(
        job.job_id, "progress",
        lambda found, now: acts.publish(
            found.replace(run=run), now, event="progress", detail="begun", data={}, attempt=found.attempt
        ),
    )  # fmt: skip


def ended_conversation(registry: Registry, session: str = "talk-1", **choices: Any) -> Job:
    job = running_conversation(registry, session, **choices)
    return registry.fail(job.job_id, reason="broken")


def continued(registry: Registry, old: Job, **choices: Any) -> Job:
    return registry.continue_job(old.job_id, prompt="also add tests", **choices).job


def claim_on(store: Store, host: str) -> str | None:
    job = store.claim(ClaimRequest(label=LABEL, owner="worker", host=host))
    return None if job is None else job.job_id
