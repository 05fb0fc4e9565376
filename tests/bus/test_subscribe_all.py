"""`mam subscribe --all` goes on where the last one ended: nothing is left out and nothing told twice."""

from __future__ import annotations

import json
import select
import signal
import time
from typing import TYPE_CHECKING

import pytest

from tests.bus.following import LONGEST, ended, numbers, until_prints

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


def listening(mam: Mam, *words: str) -> subprocess.Popen[bytes]:
    """One that is known to listen, since it has told of a job that was registered for that."""
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


def until_noted(mam: Mam, job: str) -> None:
    """A line is printed before it is noted, so that one who is killed between the two tells it once more."""
    file = mam.here / ".mam" / "delegate_job_logs" / job / "events.ndjson"
    ends = time.monotonic() + LONGEST
    while b'"received"' not in file.read_bytes():
        assert time.monotonic() < ends
        time.sleep(0.01)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_what_came_while_nobody_listened_is_told_by_the_next(either: Mam, how: signal.Signals) -> None:
    job = either.register("x")
    first = listening(either)
    either("publish", job, "progress", "--detail", "one")
    until_prints(first, job)
    until_noted(either, job)
    end(first, how)
    either("publish", job, "progress", "--detail", "two")
    late = either.register("y")
    either("complete", late)

    second = either.start("subscribe", "--all", "--json", "--timeout", "120")
    told = [json.loads(until_prints(second, job)), json.loads(until_prints(second, late))]
    assert [(event["job_id"], event["seq"], event["detail"]) for event in told] == [
        (job, 2, "two"), (late, 1, "completed"),
    ]  # fmt: skip
    either("publish", job, "progress", "--detail", "three")
    assert json.loads(until_prints(second, job))["seq"] == 3
    assert end(second, signal.SIGINT) == []


def test_the_first_one_begins_now(either: Mam) -> None:
    old = either.register("x")
    either("publish", old, "progress")
    first = listening(either)
    assert not [job for job, _ in end(first, signal.SIGINT) if job == old]


def test_what_nobody_wants_to_catch_up_with_is_left_out(mam: Mam) -> None:
    job = mam.register("x")
    end(listening(mam), signal.SIGINT)
    mam("publish", job, "progress", "--detail", "missed")
    second = listening(mam, "--from-now")
    mam("publish", job, "progress", "--detail", "heard")
    assert json.loads(until_prints(second, job))["seq"] == 2
    end(second, signal.SIGINT)


def test_everything_from_the_first_event_on(mam: Mam) -> None:
    job = mam.register("x")
    mam("publish", job, "progress")
    end(listening(mam), signal.SIGINT)
    second = mam.start("subscribe", "--all", "--json", "--timeout", "120", "--replay")
    assert json.loads(until_prints(second, job))["seq"] == 1
    end(second, signal.SIGINT)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"journal_id": 1, "at": {}}'])
def test_a_bookmark_that_cannot_be_read_begins_with_what_was_not_told_yet(mam: Mam, content: bytes) -> None:
    told, job = mam.register("told"), mam.register("x")
    first = listening(mam)
    mam("publish", told, "progress")
    until_prints(first, told)
    until_noted(mam, told)
    end(first, signal.SIGINT)
    mam("publish", job, "progress")
    file = mam.here / ".mam" / "delegate_job_logs" / ".subscribe-all.json"
    file.write_bytes(content)
    second = mam.start("subscribe", "--all", "--json", "--timeout", "120")
    assert json.loads(until_prints(second, ""))["job_id"] == job
    mam("publish", told, "progress")
    assert json.loads(until_prints(second, told))["seq"] == 2
    second.send_signal(signal.SIGINT)
    assert "read from its beginning" in ended(second)[2]


def test_events_behind_a_claim_are_told_too(mam: Mam) -> None:
    """The claim is the first entry behind the bookmark that names the job, and has no event."""
    job = mam.register("x", "-s", "here")
    end(listening(mam), signal.SIGINT)
    mam("pick", "-s", "here")
    mam("publish", job, "progress")
    second = mam.start("subscribe", "--all", "--json", "--timeout", "120")
    assert json.loads(until_prints(second, job))["seq"] == 1
    end(second, signal.SIGINT)
