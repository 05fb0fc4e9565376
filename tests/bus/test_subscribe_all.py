"""`mam subscribe --all` continues where the last one ended: it omits no event and prints none twice."""

from __future__ import annotations

import json
import select
import signal
from typing import TYPE_CHECKING

import pytest

from tests.bus.following import ended, numbers, wait_for_stdout
from tests.waiting import await_that

if TYPE_CHECKING:
    import subprocess

    from tests.bus.mosquitto import Mosquitto
    from tests.cli.command import Mam

pytestmark = pytest.mark.external


@pytest.fixture(params=["the store", "a broker"])
def either(request: pytest.FixtureRequest, mam: Mam) -> Mam:
    if request.param == "a broker":
        broker: Mosquitto = request.getfixturevalue("broker")
        mam.env.update(broker.env)
    return mam


def start_subscriber(mam: Mam, *words: str) -> subprocess.Popen[bytes]:
    """A subscriber that is known to follow, because it has printed an event of a job registered for that."""
    process = mam.start("subscribe", "--all", "--json", "--timeout", "120", *words)
    probe = mam.register("a probe")
    assert process.stdout is not None
    poll = select.poll()
    poll.register(process.stdout, select.POLLIN)
    for _ in range(200):
        mam("publish", probe, "progress", "--detail", "are you there")
        if poll.poll(100):
            return process
    raise AssertionError("it never listens")


def end(process: subprocess.Popen[bytes], how: signal.Signals) -> list[tuple[str, int]]:
    process.send_signal(how)
    _, out, _ = ended(process)
    return numbers(out)


def wait_until_recorded(mam: Mam, job: str) -> None:
    """A line is printed before it is recorded, so a subscriber killed in between prints it once more."""
    file = mam.here / ".mam" / "delegate_job_logs" / job / "events.ndjson"
    await_that(lambda: b'"received"' in file.read_bytes())


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_events_between_two_subscribers_are_printed_by_the_next(either: Mam, how: signal.Signals) -> None:
    job = either.register("x")
    first = start_subscriber(either)
    either("publish", job, "progress", "--detail", "one")
    wait_for_stdout(first, job)
    wait_until_recorded(either, job)
    end(first, how)
    either("publish", job, "progress", "--detail", "two")
    late = either.register("y")
    either("complete", late)

    second = either.start("subscribe", "--all", "--json", "--timeout", "120")
    told = [json.loads(wait_for_stdout(second, job)), json.loads(wait_for_stdout(second, late))]
    assert [(event["job_id"], event["seq"], event["detail"]) for event in told] == [
        (job, 2, "two"), (late, 1, "completed"),
    ]  # fmt: skip
    either("publish", job, "progress", "--detail", "three")
    assert json.loads(wait_for_stdout(second, job))["seq"] == 3
    assert end(second, signal.SIGINT) == []


def test_the_first_one_begins_now(either: Mam) -> None:
    old = either.register("x")
    either("publish", old, "progress")
    first = start_subscriber(either)
    assert not [job for job, _ in end(first, signal.SIGINT) if job == old]


def test_events_before_the_start_can_be_left_out(mam: Mam) -> None:
    job = mam.register("x")
    end(start_subscriber(mam), signal.SIGINT)
    mam("publish", job, "progress", "--detail", "missed")
    second = start_subscriber(mam, "--from-now")
    mam("publish", job, "progress", "--detail", "heard")
    assert json.loads(wait_for_stdout(second, job))["seq"] == 2
    end(second, signal.SIGINT)


def test_replay_prints_every_event_from_the_first_on(mam: Mam) -> None:
    job = mam.register("x")
    mam("publish", job, "progress")
    end(start_subscriber(mam), signal.SIGINT)
    second = mam.start("subscribe", "--all", "--json", "--timeout", "120", "--replay")
    assert json.loads(wait_for_stdout(second, job))["seq"] == 1
    end(second, signal.SIGINT)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"journal_id": 1, "at": {}}'])
def test_after_an_unreadable_position_only_new_events_are_printed(mam: Mam, content: bytes) -> None:
    told, job = mam.register("told"), mam.register("x")
    first = start_subscriber(mam)
    mam("publish", told, "progress")
    wait_for_stdout(first, told)
    wait_until_recorded(mam, told)
    end(first, signal.SIGINT)
    mam("publish", job, "progress")
    file = mam.here / ".mam" / "delegate_job_logs" / ".subscribe-all.json"
    file.write_bytes(content)
    second = mam.start("subscribe", "--all", "--json", "--timeout", "120")
    assert json.loads(wait_for_stdout(second, ""))["job_id"] == job
    mam("publish", told, "progress")
    assert json.loads(wait_for_stdout(second, told))["seq"] == 2
    second.send_signal(signal.SIGINT)
    assert "reading it from the beginning" in ended(second)[2]


def test_events_after_a_claim_are_printed_too(mam: Mam) -> None:
    """The claim is the first entry behind the position that names the job, and has no event."""
    job = mam.register("x", "-s", "here")
    end(start_subscriber(mam), signal.SIGINT)
    mam("pick", "-s", "here")
    mam("publish", job, "progress")
    second = mam.start("subscribe", "--all", "--json", "--timeout", "120")
    assert json.loads(wait_for_stdout(second, job))["seq"] == 1
    end(second, signal.SIGINT)
