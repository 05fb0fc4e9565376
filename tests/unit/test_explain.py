"""The explanations why a job is not running."""

from __future__ import annotations

import pytest

from mam.jobs import acts
from mam.jobs.explain import ExplainContext, explain
from mam.jobs.record import Job
from mam.jobs.status import Status
from tests.unit.jobs import NOW, in_status, later, pending, running


@pytest.mark.parametrize("status", list(Status))
@pytest.mark.parametrize("seconds", [0, 1e6])
def test_every_job_is_explained_in_whole_sentences(status: Status, seconds: float) -> None:
    said = explain(in_status(status), later(seconds), ExplainContext())

    assert said
    assert all((sentence[0].isupper() or sentence[0] == "`") and sentence.endswith(".") for sentence in said)
    assert "None" not in " ".join(said)


@pytest.mark.parametrize(
    ("ahead", "words"), [(0, "the next one"), (1, "1 pending job of"), (7, "7 pending jobs of that label")]
)
def test_a_pending_job_shows_how_many_come_first(ahead: int, words: str) -> None:
    assert words in " ".join(explain(pending(label="tmux:claude"), NOW, ExplainContext(ahead=ahead)))
    assert "'tmux:claude'" in explain(pending(label="tmux:claude"), NOW, ExplainContext(ahead=ahead))[0]


def test_a_pending_job_shows_how_often_it_was_lost() -> None:
    assert "lost 2 of 3 times" in " ".join(explain(pending().replace(losses=2), NOW, ExplainContext()))


def test_a_pending_job_shows_why_it_was_returned() -> None:
    back = acts.release(running(), NOW, attempt=1, reason="build7 cannot run it now: No space left on device").job
    said = explain(back, NOW, ExplainContext())
    assert said[-1] == "Its last attempt: build7 cannot run it now: No space left on device."


@pytest.mark.parametrize(
    ("waits_for", "words"),
    [
        ("time", "its start time"),
        ("retry", "its next try"),
        ("reset", "usage limit"),
        ("dependency", "have ended"),
        ("rain", "rain"),
        (None, "something"),
    ],
)
def test_a_waiting_job_shows_what_it_waits_for(waits_for: str | None, words: str) -> None:
    assert words in explain(in_status(Status.WAITING).replace(waiting_for=waits_for), NOW, ExplainContext())[0]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (59, "in 1 s"),
        (0, "in 1 min"),
        (-7200, "in 2 h"),
        (-200_000, "in 2 d"),
        (60, "0 s ago"),
        (4000, "1 h 5 min ago"),
    ],
)
def test_times_are_shown_in_their_two_largest_units(seconds: float, words: str) -> None:
    assert words in explain(in_status(Status.WAITING), later(seconds), ExplainContext())[0]


def test_a_retry_shows_its_reason() -> None:
    job = acts.fail_retryable(running(), NOW, attempt=1, reason="no luck", delay_seconds=9).job

    assert "Retry 1 of 3, after: no luck." in explain(job, NOW, ExplainContext())


def test_a_due_job_shows_which_commands_will_move_it() -> None:
    assert "The next `pick` or `wait` returns it to pending." in " ".join(
        explain(running(60), later(61), ExplainContext())
    )
    assert "the next `pick` or `wait` makes it pending" in " ".join(
        explain(in_status(Status.WAITING), later(61), ExplainContext())
    )
    assert "No other worker can claim it until then." in " ".join(explain(running(60), later(59), ExplainContext()))


def test_a_running_job_shows_its_holder_and_whether_it_is_quiet() -> None:
    said = explain(running(600), later(300), ExplainContext())

    assert said[0] == "It is running: attempt 1, held by worker."
    assert said[-1] == f"It is quiet: no sign of life since {NOW.second}."


@pytest.mark.parametrize(("checked", "unchecked"), [(True, False), (False, True), (None, True)])
def test_a_completed_job_shows_whether_it_was_verified(checked: bool | None, unchecked: bool) -> None:
    said = " ".join(explain(in_status(Status.COMPLETED).replace(checked=checked), NOW, ExplainContext()))

    assert ("unchecked" in said) == unchecked


@pytest.mark.parametrize("status", [Status.COMPLETED, Status.ERROR, Status.CANCELLED])
def test_an_ended_job_names_the_host_if_it_is_another_one(status: Status) -> None:
    job = in_status(status).replace(attempt=1, run={"host": "build7"})
    assert "It ran on build7." in explain(job, NOW, ExplainContext(host="here"))
    assert "build7" not in " ".join(explain(job, NOW, ExplainContext(host="build7")))


def test_an_ended_job_shows_its_reason_and_how_to_retry() -> None:
    assert explain(in_status(Status.ERROR), NOW, ExplainContext()) == [
        f"It ended in error at {NOW.second}: broken.",
        "`mam retry abc12345` registers it again as a new job.",
    ]
    assert explain(in_status(Status.CANCELLED), NOW, ExplainContext())[0] == f"It was cancelled at {NOW.second}."


@pytest.mark.parametrize(
    ("on_failure", "words"),
    [
        ("hold", "`mam retry abc12345` replaces it."),
        ("cancel", "which ended in error: the next `pick` or `wait` cancels it."),
        ("run", "the next `pick` or `wait` makes it pending."),
    ],
)
def test_a_failed_dependency_is_explained_by_its_effect(on_failure: str, words: str) -> None:
    failed, open_one = in_status(Status.ERROR), pending(job_id="other")
    waiting = pending(job_id="later", after=["abc12345", "other"], on_dependency_failure=on_failure).replace(
        status=Status.WAITING, waiting_for="dependency"
    )

    def said(*needed: Job) -> list[str]:
        return explain(waiting, NOW, ExplainContext(needed={job.job_id: job for job in needed}))

    done = in_status(Status.COMPLETED).replace(job_id="other")
    assert said(failed, done)[0].endswith(words)
    assert len(said(failed, done)) == 1
    still_waits = [] if on_failure == "cancel" else ["It waits for job other, which is pending."]
    assert said(failed, open_one)[-1:] == (still_waits or said(failed, done))


def test_a_job_is_cancelled_by_one_before_it_that_is_gone() -> None:
    waiting = pending(job_id="later", after=["abc12345"], on_dependency_failure="cancel")
    waiting = waiting.replace(status=Status.WAITING, waiting_for="dependency")
    said = explain(waiting, NOW, ExplainContext(needed={"abc12345": None}))
    assert said == ["It comes after job abc12345, which is gone: the next `pick` or `wait` cancels it."]
