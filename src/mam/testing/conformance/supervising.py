"""The worker that supervises a job ends it; its agent's own report does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mam.errors import ClaimLost
from mam.jobs import usage_limit, worker_acts
from mam.jobs.ending import supervised_end
from mam.jobs.worker_acts import Ending, OutcomeReported
from mam.stores.port import ClaimRequest
from mam.testing.conformance.base import StoreCase, register_jobs, snapshot
from mam.testing.tasks import LABEL

if TYPE_CHECKING:
    from mam.jobs.record import Job
    from mam.registry import Registry
    from mam.stores.port import Act, Store
    from mam.work.claim import FenceFields

OTHER = "another-claim_0"


class Supervising(StoreCase):
    @pytest.mark.parametrize("reason", [None, "exit code 3"])
    def test_the_worker_ends_what_it_supervises(self, registry: Registry, store: Store, reason: str | None) -> None:
        job = _supervised(registry)
        checks = {"artifacts": ["made.md"]} if reason is None else None
        ending = Ending(run={"exit_code": 0}, checks=checks, result="all of it", reason=reason)
        _refuses_end(registry, store, job, ending)

        ended = registry.end(job.job_id, "finish", supervised_end(**_held(job), ending=ending, only_if_unreported=True))

        assert ended == store.get(job.job_id)
        assert (ended.status, ended.reason) == ("completed" if reason is None else "error", reason)
        assert (ended.result, ended.run, ended.checks) == ("all of it", {"exit_code": 0}, checks)
        assert (ended.checked, ended.supervised, ended.ended_attempt) == (reason is None or None, False, 1)
        before = snapshot(store)
        assert (
            registry.end(job.job_id, "finish", supervised_end(**_held(job), ending=ending, only_if_unreported=True))
            == ended
        )
        assert snapshot(store) == before
        _refuses_end(registry, store, job, ending)

    def test_the_worker_gets_a_report_that_it_did_not_know(self, registry: Registry, store: Store) -> None:
        job = _supervised(registry)
        registry.complete(job.job_id, **_held(job), result="said")
        before = snapshot(store)
        ending = Ending(run={}, result="printed")

        with pytest.raises(OutcomeReported) as spoken:
            registry.end(job.job_id, "finish", supervised_end(**_held(job), ending=ending, only_if_unreported=True))
        assert spoken.value.said["result"] == "said"
        assert snapshot(store) == before

        ended = registry.end(
            job.job_id, "finish", supervised_end(**_held(job), ending=ending, only_if_unreported=False)
        )
        assert (ended.status, ended.result) == ("completed", "printed")

    def test_the_claim_is_compared_before_the_report(self, registry: Registry, store: Store) -> None:
        job = _supervised(registry)
        registry.complete(job.job_id, **_held(job))

        _refuses_end(registry, store, job, Ending(run={}))

    def test_every_act_of_the_worker_is_fenced_by_its_claim(self, registry: Registry, store: Store) -> None:
        job = _supervised(registry)
        before = snapshot(store)
        acts_of_worker: list[Act] = [
            lambda found, now: usage_limit.wait_for_reset(
                found, now, attempt=1, claim_id=OTHER, until_ms=now.wall_ms, reason="limit", run={}
            ),
            lambda found, now: worker_acts.started(found, now, attempt=1, claim_id=OTHER, run={}),
            lambda found, now: worker_acts.quiet(found, now, attempt=1, claim_id=OTHER, seconds=9),
            lambda found, now: worker_acts.postpone(found, now, attempt=1, claim_id=OTHER, reason="no", seconds=9),
            lambda found, now: worker_acts.hand_back(found, now, attempt=1, claim_id=OTHER, run=None),
        ]

        for act in acts_of_worker:
            with pytest.raises(ClaimLost, match="another claim"):
                registry.act(job.job_id, "act", act)
        assert snapshot(store) == before


def _held(job: Job) -> FenceFields:
    return {"attempt": job.attempt, "claim_id": job.claim_id}


def _supervised(registry: Registry) -> Job:
    register_jobs(registry)
    job = registry.claim(ClaimRequest(label=LABEL, owner="worker", lease_seconds=60, supervised=True))
    assert job is not None
    return job


def _refuses_end(registry: Registry, store: Store, job: Job, ending: Ending) -> None:
    before = snapshot(store)
    for only_if_unreported in (True, False):
        with pytest.raises(ClaimLost, match="another claim"):
            registry.end(
                job.job_id, "finish", supervised_end(job.attempt, OTHER, ending, only_if_unreported=only_if_unreported)
            )
    assert snapshot(store) == before
