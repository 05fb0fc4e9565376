"""The acts of a worker, and the reports of its agent in the meantime."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mam.errors import ClaimLost
from mam.jobs import acts, worker_acts
from mam.jobs.change import Change
from mam.jobs.record import Job
from mam.jobs.status import Status
from mam.jobs.sweep import is_quiet
from mam.jobs.worker_acts import Ending
from tests.unit.jobs import NOW, later, pending

RUN = {"attempt": 1, "host": "box"}


def held() -> Job:
    return acts.claim(pending(), NOW, owner="worker", lease_seconds=60, claim_id="mine", supervised=True).job


def finish(job: Job, **ending: object) -> Change:
    facts = {"run": RUN, **ending}
    return worker_acts.finish(job, NOW, attempt=1, ending=Ending(**facts), delay_seconds=10)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("say", "said"),
    [
        (
            lambda job: acts.complete(job, NOW, attempt=1, result="done", checked=True),
            {"status": "completed", "result": "done"},
        ),
        (lambda job: acts.fail(job, NOW, attempt=1, reason="no"), {"status": "error", "reason": "no"}),
        (
            lambda job: acts.fail_retryable(job, NOW, attempt=1, reason="no", delay_seconds=1),
            {"status": "error", "reason": "no", "retryable": True},
        ),
        (
            lambda job: acts.publish(job, NOW, event="completed", detail="well", data={"n": 1}, attempt=1),
            {"status": "completed", "detail": "well", "data": {"n": 1}},
        ),
        (
            lambda job: acts.publish(job, NOW, event="error", detail="bad", data={}, attempt=None),
            {"status": "error", "reason": "bad", "detail": "bad"},
        ),
        (lambda job: acts.set_status(job, NOW, to=Status.COMPLETED, attempt=None), {"status": "completed"}),
    ],
)
def test_the_reported_outcome_is_stored_and_does_not_end_the_job(
    say: Callable[[Job], Change], said: dict[str, object]
) -> None:
    change = say(held())

    assert change.job.status is Status.RUNNING
    assert change.job.said == {"at": NOW.second, **said}
    assert [line["event"] for line in change.lines] == ["said"]
    assert change.job.last_seq == 0


def test_a_worker_that_still_fills_its_run_changes_no_record() -> None:
    """Otherwise a store compares the next write with itself, and the session's name never reaches the disk."""
    run: dict[str, object] = {"agent": {"name": "codex"}}
    told = [
        worker_acts.started(held(), NOW, attempt=1, run=run),
        finish(held(), run=run),
        worker_acts.hand_back(held(), NOW, attempt=1, run=run),
    ]

    run["agent"]["session"] = "abc"  # type: ignore[index]

    assert [change.job.run for change in told] == [{"agent": {"name": "codex"}}] * 3


def test_without_a_worker_the_report_ends_the_job() -> None:
    job = acts.claim(pending(), NOW, owner="me", lease_seconds=60).job

    assert acts.complete(job, NOW, attempt=1, result=None, checked=False).job.status is Status.COMPLETED


def test_the_worker_ends_the_job_with_what_it_found() -> None:
    said = acts.complete(held(), NOW, attempt=1, result="mine", checked=True).job

    job = finish(said, result="mine", checks={"artifacts": [{"path": "a"}], "script": None, "problem": None}).job

    assert (job.status, job.checked, job.result, job.run, job.supervised) == (
        Status.COMPLETED, True, "mine", RUN, False,
    )  # fmt: skip
    assert (job.said or {})["status"] == "completed"


def test_a_job_with_nothing_to_check_is_unchecked() -> None:
    assert finish(held()).job.checked is False
    assert finish(held(), checks={"artifacts": [], "script": None, "problem": None}).job.checked is False


def test_a_claim_that_was_not_true_ends_in_error() -> None:
    said = acts.complete(held(), NOW, attempt=1, result="mine", checked=True).job

    change = finish(said, reason="out.txt is missing", checks={"artifacts": [], "problem": "out.txt is missing"})

    assert (change.job.status, change.job.reason) == (Status.ERROR, "out.txt is missing")
    assert change.lines[-1]["payload"]["event"] == "error"


def test_a_retryable_end_waits_for_its_next_try() -> None:
    job = finish(held(), reason="flaky", retryable=True).job

    assert (job.status, job.waiting_for, job.retries, job.supervised) == (Status.WAITING, "retry", 1, False)


@pytest.mark.parametrize("began", [None, RUN])
@pytest.mark.parametrize(("reason", "retryable"), [(None, False), ("no", False), ("no", True)])
def test_the_worker_may_repeat_the_write_that_ended_the_job(
    began: dict[str, object] | None, reason: str | None, retryable: bool
) -> None:
    """The first answer may have been lost on its way."""
    job, ending = held().replace(max_retries=0), Ending(run=RUN, reason=reason, retryable=retryable)

    def finished(found: Job, claim_id: str = "mine") -> Change:
        return worker_acts.finish(
            found,
            NOW,
            attempt=1,
            claim_id=claim_id,
            ending=ending,
            delay_seconds=1,
            began=began,
            only_if_unreported=True,
        )

    ended = finished(job).job
    again = finished(ended)

    assert (again.job, again.lines) == (ended, ())
    with pytest.raises(ClaimLost, match="another claim of attempt 1 has ended the job"):
        finished(ended, "another")


def test_only_the_current_attempt_may_report() -> None:
    job = held()
    acts_of_another: list[Callable[[], Change]] = [
        lambda: worker_acts.started(job, NOW, attempt=2, run=RUN),
        lambda: worker_acts.quiet(job, NOW, attempt=2, seconds=1),
        lambda: worker_acts.finish(job, NOW, attempt=2, ending=Ending(run=RUN), delay_seconds=1),
        lambda: worker_acts.postpone(job, NOW, attempt=2, reason="r", seconds=1),
        lambda: worker_acts.hand_back(job, NOW, attempt=2, run=None),
    ]
    for act in acts_of_another:
        with pytest.raises(ClaimLost):
            act()


def test_quiet_is_an_event_and_no_sign_of_life() -> None:
    job = held().replace(idle_timeout_sec=60)

    told = worker_acts.quiet(job, later(61), attempt=1, seconds=60)

    assert told.lines[-1]["payload"]["data"] == {"quiet": True}
    assert is_quiet(told.job, later(61))


def test_a_renewal_by_the_worker_alone_is_no_sign_of_its_agent() -> None:
    job = held().replace(idle_timeout_sec=60)

    breath = acts.heartbeat(job, later(61), attempt=1, lease_seconds=60, heard=False).job
    sign = acts.heartbeat(job, later(61), attempt=1, lease_seconds=60, heard=True).job

    assert (is_quiet(breath, later(61)), is_quiet(sign, later(61))) == (True, False)
    assert breath.lease == sign.lease


def test_a_place_that_is_not_here_is_waited_for_without_a_retry() -> None:
    job = worker_acts.postpone(held(), NOW, attempt=1, reason="no such path", seconds=60).job

    assert (job.status, job.waiting_for, job.retries, job.losses) == (Status.WAITING, "place", 0, 0)


def test_every_way_out_ends_the_supervision() -> None:
    job = held()
    for after in (
        acts.release(job, NOW, attempt=1).job,
        acts.cancel(job, NOW, attempt=None, reason=None).job,
        worker_acts.hand_back(job, NOW, attempt=1, run=RUN).job,
    ):
        assert after.supervised is False


@pytest.mark.parametrize("reason", [None, "no"])
def test_an_unrecorded_start_is_recorded_with_the_end(reason: str | None) -> None:
    job = held()
    ending = Ending(run={**RUN, "exit_code": 0}, reason=reason)
    change = worker_acts.finish(job, NOW, attempt=1, ending=ending, delay_seconds=10, began=RUN)

    events = [line["payload"]["event"] for line in change.lines if line["event"] == "published"]
    assert events == ["started", "completed" if reason is None else "error"]
    assert (change.job.last_seq, change.job.run) == (2, ending.run)
    with pytest.raises(ClaimLost):
        worker_acts.finish(job, NOW, attempt=2, ending=ending, delay_seconds=10, began=RUN)


def test_an_unrecorded_start_is_recorded_with_the_release() -> None:
    change = worker_acts.hand_back(held(), NOW, attempt=1, run=RUN, began=RUN)

    assert [line["event"] for line in change.lines] == ["published", "status_changed"]
    assert (change.job.status, change.job.last_seq) == (Status.PENDING, 1)
