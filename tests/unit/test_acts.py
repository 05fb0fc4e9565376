"""Acts one by one, as pure functions from a job to a change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mam.errors import BadInput, ClaimLost, IllegalMove, Refused
from mam.jobs import acts
from mam.jobs.draft import draft_job
from mam.jobs.status import CANCELLED, COMPLETED, ERROR, PENDING, RUNNING, WAITING, Status
from mam.util.clock import Moment, parse_time
from tests.unit.jobs import NOW, in_status, later, pending, running

if TYPE_CHECKING:
    from mam.jobs.change import Change


def _moves(change: Change) -> list[str]:
    return [f"{line['from']} {line['to']}" for line in change.lines if line["event"] == "status_changed"]


def _publish(event: str, job: object = None, attempt: int | None = 1, **more: object) -> Change:
    given = {"detail": "", "data": {}, **more}
    return acts.publish(job or running(), NOW, event=event, attempt=attempt, **given)  # type: ignore[arg-type]


# -- the fence -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", list(Status))
def test_a_claim_holds_only_while_running_under_exactly_that_attempt(status: Status) -> None:
    job = in_status(status)
    for attempt in (None, 0, 1, 2):
        if attempt is None or (status is RUNNING and attempt == 1):
            acts.check_fence(job, attempt)
        else:
            with pytest.raises(ClaimLost):
                acts.check_fence(job, attempt)


@pytest.mark.parametrize(
    ("attempt", "why"),
    [(1, "attempt 2 has taken over"), (2, "the job is pending"), (3, "no such attempt, the latest is 2")],
)
def test_the_refusal_states_why_the_claim_is_lost(attempt: int, why: str) -> None:
    released = acts.release(running().replace(attempt=2), NOW, attempt=2).job

    with pytest.raises(ClaimLost, match=why):
        acts.heartbeat(released, NOW, attempt=attempt, lease_seconds=None)


def test_the_fence_comes_before_the_question_whether_the_move_is_legal() -> None:
    with pytest.raises(ClaimLost):
        acts.fail(in_status(COMPLETED), NOW, attempt=7, reason="late")


# -- registering and claiming --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seconds", "status"), [(-1, PENDING), (0, PENDING), (0.001, WAITING), (60, WAITING)])
def test_a_start_time_decides_whether_a_new_job_waits(seconds: float, status: Status) -> None:
    due_ms = NOW.wall_ms + round(seconds * 1000)
    job = acts.register(draft_job(job_id="a", prompt="p", agent="codex", due_ms=due_ms), 7, NOW).job

    assert (job.status, job.number, job.created_at) == (status, 7, NOW.second)
    assert (job.waiting_for, job.due_at is None) == (("time", False) if status is WAITING else (None, True))


def test_a_claim_forgets_why_the_last_attempt_failed() -> None:
    failed = acts.fail_retryable(running(), NOW, attempt=1, reason="no luck", delay_seconds=1).job
    assert failed.reason == "no luck"
    again = acts.set_status(failed, NOW, to=PENDING, attempt=None).job

    assert acts.claim(again, NOW, owner="worker", lease_seconds=60).job.reason is None


# -- renewing ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [status for status in Status if status is not RUNNING])
def test_only_a_running_job_has_a_lease_to_renew(status: Status) -> None:
    with pytest.raises(Refused, match=str(status)):
        acts.heartbeat(in_status(status), NOW, attempt=None, lease_seconds=None)


def test_a_renewal_takes_the_asked_length_and_keeps_it() -> None:
    longer = acts.heartbeat(running(60), later(10), attempt=1, lease_seconds=300).job
    again = acts.heartbeat(longer, later(20), attempt=1, lease_seconds=None).job

    assert longer.lease is not None
    assert again.lease is not None
    assert longer.lease.left_ms(later(10)) == 300_000
    assert again.lease.left_ms(later(20)) == 300_000
    assert again.heard_at == later(20).second


def test_an_event_never_shortens_a_lease() -> None:
    job = acts.heartbeat(running(600), NOW, attempt=1, lease_seconds=600).job
    assert job.lease is not None
    short = job.replace(lease=job.lease.replace(seconds=10))

    after = acts.publish(short, later(1), event="progress", detail="", data={}, attempt=1).job

    assert after.lease is not None
    assert after.lease.left_ms(later(1)) == 599_000


def test_an_old_running_record_without_a_lease_takes_events() -> None:
    after = acts.publish(running().replace(lease=None), NOW, event="progress", detail="", data={}, attempt=None).job

    assert (after.lease, after.last_seq) == (None, 1)


# -- ending --------------------------------------------------------------------------------------------------------


def test_completing_a_pending_job_is_a_claim_by_hand_and_an_end() -> None:
    change = acts.complete(pending(), NOW, attempt=None, result="42", checked=True)

    assert _moves(change) == ["pending running", "running completed"]
    assert (change.job.owner, change.job.attempt, change.job.result, change.job.checked) == ("manual", 1, "42", True)


@pytest.mark.parametrize("status", [WAITING, ERROR, CANCELLED])
def test_a_waiting_or_ended_job_cannot_be_completed(status: Status) -> None:
    with pytest.raises(IllegalMove, match=f"{status} and cannot become completed"):
        acts.complete(in_status(status), NOW, attempt=None, result=None, checked=False)


@pytest.mark.parametrize("status", [COMPLETED, ERROR, CANCELLED])
def test_ending_a_job_again_in_the_same_way_changes_nothing(status: Status) -> None:
    job = in_status(status)

    assert acts.set_status(job, later(5), to=status, attempt=None).lines == ()
    assert acts.set_status(job, later(5), to=status, attempt=None).job is job


def test_the_reason_after_the_last_retry_counts_the_retries() -> None:
    job = running(max_retries=2).replace(retries=2)

    final = acts.fail_retryable(job, NOW, attempt=1, reason="no luck", delay_seconds=5).job

    assert (final.status, final.reason) == (ERROR, "no luck (gave up after 2 retries)")


def test_a_retry_waits_for_the_given_delay() -> None:
    failed = acts.fail_retryable(running(), NOW, attempt=1, reason="no luck", delay_seconds=7.25).job

    assert failed.due_at is not None
    assert parse_time(failed.due_at) == NOW.wall_ms + 7250
    assert (failed.status, failed.owner, failed.lease, failed.retries) == (WAITING, None, None, 1)


def test_a_cancel_without_an_attempt_is_not_unfenced() -> None:
    change = acts.cancel(running(), NOW, attempt=None, reason=None)

    assert all("unfenced" not in line for line in change.lines)
    assert change.job.reason == "cancelled"
    assert change.lines[-1]["payload"]["event"] == "error"
    assert change.lines[-1]["payload"]["data"] == {"status": "cancelled"}


def test_the_status_in_the_terminal_event_cannot_be_overwritten_by_the_writer() -> None:
    change = _publish("error", data={"status": "completed", "code": 3})

    assert change.lines[-1]["payload"]["data"] == {"status": "error", "code": 3}


def test_an_end_clears_what_only_an_open_job_has() -> None:
    job = acts.cancel(in_status(WAITING), NOW, attempt=None, reason="enough").job

    assert (job.waiting_for, job.due_at, job.lease, job.reason) == (None, None, None, "enough")


# -- by hand -------------------------------------------------------------------------------------------------------


def test_waiting_made_pending_by_hand_waits_for_nothing() -> None:
    job = acts.set_status(in_status(WAITING), NOW, to=PENDING, attempt=None).job

    assert (job.status, job.waiting_for, job.due_at) == (PENDING, None, None)


def test_running_set_by_its_holder_is_a_renewal() -> None:
    change = acts.set_status(running(60), later(30), to=RUNNING, attempt=1)

    assert [line["event"] for line in change.lines] == ["renewed"]
    assert change.job.lease is not None
    assert change.job.lease.left_ms(later(30)) == 60_000


def test_error_set_by_hand_has_a_reason() -> None:
    assert acts.set_status(pending(), NOW, to=ERROR, attempt=None).job.reason == "set by hand"


# -- events --------------------------------------------------------------------------------------------------------


def test_started_on_a_running_job_is_stored_and_claims_nothing() -> None:
    change = _publish("started")

    assert (change.job.attempt, change.job.owner, change.job.last_seq) == (1, "worker", 1)
    assert _moves(change) == []


@pytest.mark.parametrize("status", [WAITING, COMPLETED, ERROR, CANCELLED])
def test_started_where_nothing_can_start_is_refused(status: Status) -> None:
    with pytest.raises((IllegalMove, Refused)):
        _publish("started", in_status(status), attempt=None)


@pytest.mark.parametrize("status", list(Status))
def test_an_unknown_event_is_not_stored(status: Status) -> None:
    with pytest.raises(BadInput, match="not an event"):
        _publish("banana", in_status(status), attempt=None)


def test_an_event_without_a_detail_has_its_name_as_detail() -> None:
    assert _publish("progress").lines[-1]["payload"]["detail"] == "progress"


def test_the_detail_of_an_error_is_the_reason() -> None:
    assert _publish("error", detail="disk full").job.reason == "disk full"
    assert _publish("error").job.reason == "error"


def test_a_reserved_number_leaves_a_marker() -> None:
    change = acts.reserve_seq(pending().replace(last_seq=4), NOW)

    assert change.job.last_seq == 5
    assert [(line["event"], line["seq"], line["upto"]) for line in change.lines] == [("reserved", 5, 5)]


# -- time ----------------------------------------------------------------------------------------------------------


def test_a_job_is_never_updated_before_it_was_created() -> None:
    yesterday = Moment(wall_ms=NOW.wall_ms - 86_400_000, boot_ms=NOW.boot_ms + 1, boot_id="boot-1")

    job = acts.claim(pending(), yesterday, owner="worker", lease_seconds=60).job

    assert job.created_at == job.updated_at == NOW.second
