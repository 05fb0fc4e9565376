"""`mam subscribe`: first the registry, then new events, until the jobs have ended."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from mam.events.wire import to_wire
from tests.bus.following import ended, local_store, wait_for_stderr, wait_for_stdout
from tests.bus.mosquitto import Mosquitto, send
from tests.cli.command import Mam
from tests.waiting import await_that


@pytest.fixture(params=["store", "broker"])
def either(request: pytest.FixtureRequest, mam: Mam) -> Mam:
    """Each test runs with a broker and without one."""
    if request.param == "broker":
        mam.env.update(request.getfixturevalue("broker").env)
    return mam


def _topic(job: str) -> str:
    return f"python/mqtt/jobs/{job}/events"


def test_a_subscriber_started_first_prints_all_events_and_ends(either: Mam) -> None:
    job = either.register()
    subscriber = either.start("subscribe", job)

    either("publish", job, "started")
    assert wait_for_stdout(subscriber, "started") == f"{job}\t1\tstarted\tstarted\n"
    either("publish", job, "progress", "--detail", "half")
    assert wait_for_stdout(subscriber, "half") == f"{job}\t2\tprogress\thalf\n"
    either("complete", job)
    either("relay", "--once")
    code, out, _ = ended(subscriber)

    assert (code, out) == (0, f"{job}\t3\tcompleted\tcompleted\n")


@pytest.mark.parametrize(("verb", "code"), [("complete", 0), ("fail", 7), ("cancel", 8)])
def test_started_after_the_end_it_ends_too(either: Mam, verb: str, code: int) -> None:
    job = either.register()
    either("publish", job, "started")
    either(verb, job, *(["--reason", "no"] if verb == "fail" else []))

    ran = either("subscribe", job, "--json")

    assert ran.code == code
    assert [json.loads(line) for line in ran.out.splitlines()] == local_store(either).events(job)


def test_an_error_decides_the_exit_code_of_several_jobs(either: Mam) -> None:
    jobs = [either.register() for _ in range(3)]
    either("complete", jobs[0])
    either("cancel", jobs[1])
    assert either("subscribe", *jobs[:2], "--replay").code == 8
    either("publish", jobs[2], "started")
    either("fail", jobs[2], "--reason", "no")

    assert either("subscribe", *jobs, "--replay").code == 7


def test_events_that_were_printed_before_are_not_printed_again(either: Mam) -> None:
    job = either.register()
    either("publish", job, "started")
    first = either.start("subscribe", job)
    wait_for_stdout(first, "started")
    _wait_until_recorded(either, job, [1])
    first.kill()
    first.communicate()
    either("complete", job)

    again = either("subscribe", job)

    assert (again.code, again.out) == (0, f"{job}\t2\tcompleted\tcompleted\n")
    assert "up to 1 were printed before" in again.stderr
    assert len(either("subscribe", job, "--replay").out.splitlines()) == 2
    assert [line["payload"]["seq"] for line in _received(either, job)] == [1, 2, 1, 2]


def test_it_gives_up_after_its_time_and_after_silence(either: Mam) -> None:
    job = either.register()

    late = either("subscribe", job, "--timeout", "0.2", "--idle-timeout", "0")
    silent = either("subscribe", job, "--idle-timeout", "0.2")

    assert (late.code, silent.code) == (5, 5)
    assert "has not ended" in late.stderr
    assert "said nothing" in silent.stderr


def test_the_job_s_own_times_count(either: Mam) -> None:
    job = either.register("x", "--timeout", "1", "--idle-timeout", "0")

    assert either("subscribe", job).code == 5


def test_waiting_for_permission_is_not_silence(either: Mam) -> None:
    job = either.register()
    either("publish", job, "permission_required")
    subscriber = either.start("subscribe", job, "--idle-timeout", "0.3")
    wait_for_stdout(subscriber, "permission_required")

    with pytest.raises(Exception, match="timed out"):
        subscriber.wait(1.5)
    either("publish", job, "progress")

    assert ended(subscriber)[0] == 5


def test_waiting_processes_settle_a_lost_job(either: Mam) -> None:
    job = either.register()
    store = local_store(either)
    from mam.registry import Registry

    for _ in range(3):
        await_that(lambda: Registry(store).pick("shell", owner="me", lease_seconds=0.01))
    store.close()

    assert either("subscribe", job).code == 7


def test_events_of_all_jobs_are_printed_from_now_on(either: Mam) -> None:
    old = either.register()
    either("publish", old, "started")
    subscriber = either.start("subscribe", "--all", "--json", "--timeout", "60")
    _until_follows(either, subscriber, old)
    new = either.register()
    either("publish", new, "started")
    either("publish", new, "completed")

    told = json.loads(wait_for_stdout(subscriber, f'"{new}"'))
    end = json.loads(wait_for_stdout(subscriber, "completed"))
    subscriber.kill()
    subscriber.communicate()

    assert (told["seq"], end["seq"], end["job_id"]) == (1, 2, new)


def test_it_needs_known_jobs_or_all(mam: Mam) -> None:
    mam.register()

    mam("subscribe").failed(2, "give the ids")
    mam("subscribe", "--all", "x").failed(2, "give the ids")
    mam("subscribe", "nosuchjob").failed(1, "nosuchjob")


# -- the broker ------------------------------------------------------------------------------------------------------


def test_a_broker_that_restarts_is_survived(mam_mqtt: Mam, broker: Mosquitto) -> None:
    job = mam_mqtt.register()
    subscriber = mam_mqtt.start("subscribe", job)
    mam_mqtt("publish", job, "started")
    wait_for_stdout(subscriber, "started")

    broker.kill()
    wait_for_stderr(subscriber, "Following the store")
    mam_mqtt("publish", job, "progress", "--detail", "meanwhile")
    wait_for_stdout(subscriber, "meanwhile")
    broker.start()
    wait_for_stderr(subscriber, "is available again")
    mam_mqtt("publish", job, "completed")

    assert ended(subscriber)[0] == 0


def test_a_broker_that_was_never_there_is_done_without(mam_mqtt: Mam, broker: Mosquitto) -> None:
    job = mam_mqtt.register()
    broker.kill()
    subscriber = mam_mqtt.start("subscribe", job)
    wait_for_stderr(subscriber, "cannot be reached")

    mam_mqtt("complete", job)

    assert ended(subscriber)[0] == 0


GARBAGE = [
    b"", b"{}", b"not json", b"x" * 20_000, b"[" * 9000, b'{"a":1,"a":2}', b'{"seq":NaN}', b"\xff\xfe", b"null",
    b'{"data":' * 900, b"[" * 80 + b"]" * 80, b'{"seq":1e999}', b'{"seq":' + b"9" * 5000 + b"}",
    b'{"detail":"\\ud800\\u0000"}',
]  # fmt: skip


def _lies(job: str) -> list[bytes]:
    true = {
        "schema_version": 1, "seq": 9, "job_id": job, "event": "completed", "timestamp": "2026-01-01T00:00:00Z",
        "detail": "forged", "data": {"status": "completed"},
    }  # fmt: skip
    return [
        to_wire(true),
        to_wire({**true, "seq": 1}),
        to_wire({**true, "seq": 1, "event": "progress"}),
        to_wire({**true, "seq": 2**53}),
        to_wire({**true, "job_id": "another"}),
        to_wire({**true, "schema_version": 2}),
        to_wire(true, "a guessed token"),
        to_wire({**true, "event": "permission_required"}),
    ]


@pytest.mark.parametrize("words", [[], ["--sign"]])
def test_no_message_makes_the_subscriber_report_a_false_event(
    mam_mqtt: Mam, broker: Mosquitto, words: list[str]
) -> None:
    job = mam_mqtt.register("x", *words)
    for message in GARBAGE[1:3]:
        send(broker, _topic(job), message, "--retain")
    subscriber = mam_mqtt.start("subscribe", job)
    mam_mqtt("publish", job, "started")
    wait_for_stdout(subscriber, "started")

    for message in GARBAGE + _lies(job):
        send(broker, _topic(job), message)
    mam_mqtt("publish", job, "progress", "--detail", "true")
    assert wait_for_stdout(subscriber, "\t") == f"{job}\t2\tprogress\ttrue\n"
    for message in _lies(job):
        send(broker, _topic(job), message)
    mam_mqtt("publish", job, "error", "--detail", "really")
    code, out, err = ended(subscriber)

    assert (code, out) == (7, f"{job}\t3\terror\treally\n")
    assert "dropped a message" in err
    assert "Traceback" not in err
    assert len(err.splitlines()) < 30
    assert [event["seq"] for event in local_store(mam_mqtt).events(job)] == [1, 2, 3]


def test_a_signed_job_s_events_carry_their_signature(mam_mqtt: Mam, broker: Mosquitto) -> None:
    from tests.bus.mosquitto import Reader, as_parts

    job = mam_mqtt.register("x", "--sign")
    reader = Reader(broker)

    mam_mqtt("publish", job, "started")
    payload = as_parts(reader.take(1)[0])[2]
    reader.stop()

    assert len(payload["data"]["hmac_sig"]) == 64
    token = local_store(mam_mqtt).secrets(job)["auth_token"]
    assert len(token) == 43
    assert token not in "".join(file.read_text(errors="replace") for file in _files(mam_mqtt) if file.name != "secrets")


# -- shared ----------------------------------------------------------------------------------------------------------


def _files(mam: Mam) -> list[Path]:
    return [file for file in (mam.here / ".mam").rglob("*") if file.is_file()]


def _received(mam: Mam, job: str) -> list[dict[str, dict[str, int]]]:
    file = mam.here / ".mam" / "delegate_job_logs" / job / "events.ndjson"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    return [line for line in lines if line["event"] == "received"]


def _wait_until_recorded(mam: Mam, job: str, numbers: list[int]) -> None:
    ends = time.monotonic() + 60
    while [line["payload"]["seq"] for line in _received(mam, job)] != numbers:
        assert time.monotonic() < ends


def _until_follows(mam: Mam, subscriber: object, job: str) -> None:
    """Wait until the subscriber prints an event, so that it is known to follow."""
    import os
    import select

    stdout = subscriber.stdout  # type: ignore[attr-defined]
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        mam("publish", job, "progress")
        if select.select([stdout], [], [], 0.1)[0]:
            return
        os.sched_yield()
    raise AssertionError("it does not listen")
