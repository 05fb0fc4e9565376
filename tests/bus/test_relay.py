"""The relay sends events in order, each until the broker acknowledges it, whatever is killed."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.bus.conftest import Tracked
from tests.bus.following import (
    ended,
    local_store,
    numbers,
    sent_position,
    set_sent_position,
    stored_events,
    wait_for_relay,
    wait_for_stderr,
)
from tests.bus.mosquitto import Mosquitto, Reader, as_parts
from tests.cli.command import Mam
from tests.faults.killing import count_kill
from tests.waiting import await_that

PUBLISHERS = 4
EVENTS = int(os.environ.get("MAM_BUS_EVENTS", "200"))
"""For 4 publishers together; 5,000 in the long run."""
RELAY_KILLS = int(os.environ.get("MAM_BUS_KILLS", "10"))
"""200 in the long run."""


def _publishers(mam: Mam, jobs: list[str], count: int, *pause: str) -> list[subprocess.Popen[bytes]]:
    store = str(mam.here / ".mam" / "jobs")
    root = str(Path(__file__).resolve().parents[2])
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.bus.publishing", store, job, str(count), *pause],
            cwd=root,
            env=mam.env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        for job in jobs
    ]
    assert isinstance(mam, Tracked)
    mam.started += started
    return started


def _all_ended(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        code, _, err = ended(process)
        assert code == 0, err


def _subscriber(mam: Mam, jobs: list[str]) -> subprocess.Popen[bytes]:
    """The subscriber connects before anything is published: it gets the retained end of an old job only then."""
    return mam.start("subscribe", *jobs, "--json", "--timeout", "0", "--idle-timeout", "0")


def test_a_broker_killed_in_the_middle_loses_nothing(mam_mqtt: Mam, broker: Mosquitto) -> None:
    jobs = [mam_mqtt.register() for _ in range(PUBLISHERS)]
    relay = mam_mqtt.start("relay")
    wait_for_stderr(relay, "sending the events")
    subscriber = _subscriber(mam_mqtt, jobs)
    # At least two seconds: a relay saves its position every second, and quick publishers would be done by then.
    publishers = _publishers(mam_mqtt, jobs, EVENTS // PUBLISHERS - 1, f"{2 * PUBLISHERS / EVENTS:.4f}")

    for turn in (1, 2):
        _wait_until_sent(mam_mqtt, broker, turn * EVENTS // 10)
        broker.kill()
        broker.start()
    _all_ended(publishers)
    code, out, _ = ended(subscriber)
    relay.terminate()
    assert ended(relay)[0] == 0

    received = numbers(out)
    assert code == 0
    assert len(received) == len(set(received))
    assert set(received) == stored_events(mam_mqtt)
    assert len(received) == EVENTS // PUBLISHERS * PUBLISHERS
    for job in jobs:
        assert [seq for job_id, seq in received if job_id == job] == sorted(
            seq for job_id, seq in received if job_id == job
        )


def test_a_relay_killed_again_and_again_loses_nothing(mam_mqtt: Mam, broker: Mosquitto, tmp_path: Path) -> None:
    jobs = [mam_mqtt.register() for _ in range(PUBLISHERS)]
    received_by_others = tmp_path / "heard"
    with received_by_others.open("wb") as file:
        reader = Reader(broker)
        copier = subprocess.Popen(["cat"], stdin=reader.process.stdout, stdout=file)
        publishers = _publishers(mam_mqtt, jobs, EVENTS // PUBLISHERS - 1, "0.002")
        chance = random.Random(5)
        for _ in range(RELAY_KILLS):
            relay = mam_mqtt.start("relay")
            wait_for_stderr(relay, "sending the events")
            time.sleep(chance.random() * 0.1)  # the random moment is the point
            relay.kill()
            relay.communicate()
            count_kill()
        _all_ended(publishers)
        mam_mqtt("relay", "--once")
        _until_holds(received_by_others, stored_events(mam_mqtt))
        reader.process.terminate()
        assert copier.wait(60) == 0
        reader.stop()

    received = _received_events(received_by_others)
    assert set(received) == stored_events(mam_mqtt)
    for job in jobs:
        assert _first_times(received, job) == sorted({seq for job_id, seq in received if job_id == job})
    assert mam_mqtt("relay", "--status", "--json").json[0]["waiting"] == 0


def test_killed_between_the_answer_and_the_mark_it_sends_again(mam_mqtt: Mam, broker: Mosquitto) -> None:
    job = mam_mqtt.register()
    mam_mqtt("publish", job, "started")
    before = sent_position(mam_mqtt, broker)
    assert before is not None
    mam_mqtt("publish", job, "progress")
    set_sent_position(mam_mqtt, broker, before)  # as if it had been killed before the position was saved
    reader = Reader(broker)

    mam_mqtt("relay", "--once")
    received = [as_parts(line)[2]["seq"] for line in reader.take(1)]
    reader.stop()

    assert received == [2]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"at": 7}', '{"epoch": 1, "number": -1, "mark": 0, "count": 0}'])
def test_a_position_that_is_damaged_sends_everything_again(mam_mqtt: Mam, broker: Mosquitto, content: str) -> None:
    job = mam_mqtt.register()
    mam_mqtt("publish", job, "started")
    set_sent_position(mam_mqtt, broker, content)
    reader = Reader(broker)

    assert mam_mqtt("publish", job, "progress").code == 0
    received = [as_parts(line)[2]["seq"] for line in reader.take(2)]
    reader.stop()

    assert received == [1, 2]


def test_a_new_journal_is_sent_from_its_beginning(mam_mqtt: Mam, broker: Mosquitto) -> None:
    mam_mqtt("publish", mam_mqtt.register(), "started")
    of_another = sent_position(mam_mqtt, broker)
    assert of_another is not None
    shutil.rmtree(mam_mqtt.here / ".mam" / "jobs")
    job = mam_mqtt.register("another")
    set_sent_position(mam_mqtt, broker, of_another)
    reader = Reader(broker)

    ran = mam_mqtt("publish", job, "started")
    again = mam_mqtt("publish", job, "progress")
    received = [as_parts(line)[2] for line in reader.take(2)]
    reader.stop()

    assert [(event["job_id"], event["seq"]) for event in received] == [(job, 1), (job, 2)]
    assert "sending it from its beginning" in ran.stderr
    assert again.stderr == "", "it is reported once"


def test_a_lost_relay_sends_the_last_event_of_each_job(mam_mqtt: Mam, broker: Mosquitto) -> None:
    """No relay ran for longer than the retention, and `mam prune` has summarised the journal."""
    from mam.maintenance.retention import Retention, prune
    from mam.registry import Registry

    old = mam_mqtt.register()
    open_job, ended_job = mam_mqtt.register(), mam_mqtt.register()
    assert mam_mqtt("complete", old).code == 0
    assert mam_mqtt("relay", "--once").code == 0
    store = local_store(mam_mqtt)
    registry = Registry(store)
    for detail in ("one", "two"):
        registry.publish(open_job, event="progress", detail=detail)
    prune(registry, Retention(before="9999-01-01T00:00:00Z"), -1.0, lambda _count: None)
    registry.complete(ended_job)
    newest = registry.register(prompt="p", agent="codex").job.job_id
    store.close()

    reader = Reader(broker)
    assert as_parts(reader.take(1)[0])[0], "the retained end of the first"
    ran = mam_mqtt("relay", "--once")
    assert ran.code == 0
    assert "lost: no relay has sent events for longer than the retention" in ran.stderr
    heard = [line.split(" ", 2) for line in reader.take(3)]
    assert heard[0][1:] == [f"python/mqtt/jobs/{old}/events", ""], "it was archived"
    events = {json.loads(text)["job_id"]: json.loads(text) for _, _, text in heard[1:]}
    assert (events[open_job]["seq"], events[open_job]["detail"]) == (2, "two")
    assert events[ended_job]["event"] == "completed"
    again = mam_mqtt("relay", "--once")
    assert (again.code, "lost" in again.stderr) == (0, False)
    assert mam_mqtt("publish", newest, "progress").code == 0
    assert as_parts(reader.take(1)[0])[2]["job_id"] == newest


def test_two_relays_take_turns_and_the_second_takes_over(mam_mqtt: Mam, broker: Mosquitto) -> None:
    job = mam_mqtt.register()
    reader = Reader(broker)
    first = mam_mqtt.start("relay")
    wait_for_stderr(first, "sending the events")
    wait_for_relay(mam_mqtt)
    second = mam_mqtt.start("relay")
    wait_for_stderr(second, "sending the events")

    mam_mqtt("publish", job, "started")
    assert as_parts(reader.take(1)[0])[2]["seq"] == 1
    _wait_until_sent(mam_mqtt, broker, 1)  # if it is killed before that is saved, the second correctly sends it again
    first.kill()
    first.communicate()
    mam_mqtt("publish", job, "progress")
    mam_mqtt("publish", job, "progress")
    received = [as_parts(line)[2]["seq"] for line in reader.take(2)]
    reader.stop()
    second.terminate()

    assert ended(second)[0] == 0
    assert received == [2, 3]


def test_a_broker_that_was_away_is_found_again(mam_mqtt: Mam, broker: Mosquitto) -> None:
    job = mam_mqtt.register()
    broker.kill()
    relay = mam_mqtt.start("relay")
    wait_for_stderr(relay, "cannot be reached")
    mam_mqtt("publish", job, "started")
    assert mam_mqtt("relay", "--status", "--json").json == [
        {"broker": f"127.0.0.1:{broker.port}", "waiting": 1, "sent": 0, "served": True}
    ]

    broker.start()
    wait_for_stderr(relay, "is available again")
    _wait_until_sent(mam_mqtt, broker, 1)
    relay.send_signal(signal.SIGINT)

    assert ended(relay)[0] == 0
    assert mam_mqtt("relay", "--status").line == f"127.0.0.1:{broker.port}\t0 waiting\t1 sent\tno relay runs"


def test_a_job_that_is_gone_is_cleared_from_the_broker(mam_mqtt: Mam, broker: Mosquitto) -> None:
    job = mam_mqtt.register()
    mam_mqtt("publish", job, "completed")
    other = mam_mqtt.register()
    assert mam_mqtt("prune", "--older-than", "0").line == "1 completed moved"

    mam_mqtt("publish", other, "started")
    mam_mqtt("publish", other, "completed")
    late = Reader(broker)
    topics = [as_parts(line)[1] for line in late.take(1)]
    late.stop()

    assert topics == [f"python/mqtt/jobs/{other}/events"]


def test_a_topic_that_would_reach_others_is_not_used(mam_mqtt: Mam, broker: Mosquitto) -> None:
    mam_mqtt.register()
    store = mam_mqtt.here / ".mam" / "jobs"
    template = json.loads(next(store.glob("*.json")).read_bytes())
    for number, prefix in enumerate(("a/#", "+/b", "$SYS/x", "", "nul\0", "half \ud800")):
        job = {**template, "job_id": f"bad{number}", "topic_prefix": prefix, "number": 0}
        (store / f"bad{number}.json").write_text(json.dumps(job))
    assert "bad5" in mam_mqtt("adopt", "--all").out, "no store takes half of a character"
    good = mam_mqtt.register()
    reader = Reader(broker, topic="#")

    said = [mam_mqtt("publish", f"bad{number}", "progress") for number in range(5)]
    mam_mqtt("publish", good, "progress")
    received = as_parts(reader.take(1)[0])
    reader.stop()

    assert [ran.code for ran in said] == [0] * 5
    assert received[1] == f"python/mqtt/jobs/{good}/events"
    assert "not a valid topic" in said[0].stderr


def test_a_relay_can_skip_old_events(mam_mqtt: Mam, mam: Mam, broker: Mosquitto) -> None:
    job = mam.register()
    mam("publish", job, "started", MQTT_BROKER="")
    assert mam_mqtt("relay", "--status", "--json").json[0]["waiting"] == 1

    assert mam_mqtt("relay", "--once", "--from-now").code == 0

    assert mam_mqtt("relay", "--status", "--json").json[0] == {
        "broker": f"127.0.0.1:{broker.port}", "waiting": 0, "sent": 0, "served": False,
    }  # fmt: skip


def test_without_a_broker_there_is_nothing_to_relay(mam: Mam) -> None:
    mam.register()

    mam("relay").failed(2, "no broker is configured")
    assert "subscribers follow the store" in mam("relay", "--status").stderr


def test_an_old_record_s_own_broker_is_used(mam: Mam, broker: Mosquitto) -> None:
    mam.register()
    store = mam.here / ".mam" / "jobs"
    record = json.loads(next(store.glob("*.json")).read_bytes())
    named = {"host": "127.0.0.1", "port": broker.port, "tls": False, "username": None, "password": None}
    old = {**record, "job_id": "abc12345", "broker": named, "topic_prefix": "old/abc12345", "number": 0}
    (store / "abc12345.json").write_text(json.dumps(old))
    mam("adopt", "abc12345")
    reader = Reader(broker, topic="old/+/events")

    mam("publish", "abc12345", "started")
    mam("publish", "abc12345", "progress", MQTT_BROKER="127.0.0.1", MQTT_PORT="1")  # the environment takes precedence
    assert mam("relay", "--once").code == 0
    received = [as_parts(line)[2]["seq"] for line in reader.take(2)]
    reader.stop()

    assert received == [1, 2]


def test_the_files_beside_the_store_are_private(mam_mqtt: Mam) -> None:
    mam_mqtt("publish", mam_mqtt.register(), "started")

    files = list((mam_mqtt.here / ".mam" / "jobs" / ".store").glob("relay-*"))
    assert files
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


@pytest.mark.parametrize("kind", ["sqlite", "files"])
def test_every_store_on_a_host_has_its_relay(mam_mqtt: Mam, broker: Mosquitto, kind: str, tmp_path: Path) -> None:
    address = f"sqlite://{tmp_path}/jobs.db" if kind == "sqlite" else str(tmp_path / "jobs")
    job = mam_mqtt("register", "x", "--agent", "a", "--store", address).line
    reader = Reader(broker)

    mam_mqtt("publish", job, "started", "--store", address)
    assert as_parts(reader.take(1)[0])[2]["job_id"] == job
    reader.stop()

    assert mam_mqtt("relay", "--status", "--json", "--store", address).json[0]["waiting"] == 0


# -- shared ----------------------------------------------------------------------------------------------------------


def _sent(mam: Mam, broker: Mosquitto) -> int:
    position = sent_position(mam, broker)
    return int(json.loads(position)["count"]) if position is not None else 0


def _wait_until_sent(mam: Mam, broker: Mosquitto, count: int) -> None:
    await_that(lambda: _sent(mam, broker) >= count, longest=240)


def _received_events(file: Path) -> list[tuple[str, int]]:
    lines = [line for line in file.read_text().splitlines() if line.startswith("> ")]
    return [(payload["job_id"], payload["seq"]) for _, _, payload in (as_parts(line[2:]) for line in lines)]


def _until_holds(file: Path, wanted: set[tuple[str, int]]) -> None:
    await_that(lambda: wanted <= set(_received_events(file)), "events are missing", longest=120)


def _first_times(received: list[tuple[str, int]], job: str) -> list[int]:
    return list(dict.fromkeys(seq for job_id, seq in received if job_id == job))


def test_the_events_of_the_store_are_all_there(mam_mqtt: Mam) -> None:
    """The harness itself: it compares with what `mam` shows."""
    job = mam_mqtt.register()
    mam_mqtt("publish", job, "started")

    assert stored_events(mam_mqtt) == {(job, 1)}
    assert [event["seq"] for event in local_store(mam_mqtt).events(job)] == [1]
