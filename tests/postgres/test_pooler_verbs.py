"""The commands that use the store work behind PgBouncer, in both modes of its pools."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.bus.conftest import Tracked
from tests.bus.mosquitto import Mosquitto, Reader
from tests.cli.command import finish
from tests.mcp.client import mcp
from tests.needs import program
from tests.postgres.pooler import Pooler
from tests.serve.process import server_process
from tests.waiting import Gate, await_that

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cli.command import Mam, Ran
    from tests.postgres.server import PrivateServer

pytestmark = pytest.mark.external


@pytest.fixture(scope="module")
def pooler(server: PrivateServer) -> Iterator[Pooler]:
    pooler = Pooler(server.folder / "pooler-verbs", server)
    yield pooler
    pooler.stop()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    broker = Mosquitto(tmp_path / "broker")
    yield broker
    broker.stop()


@pytest.fixture(params=["session", "transaction"])
def mam(request: pytest.FixtureRequest, pooler: Pooler, server: PrivateServer, tmp_path: Path) -> Iterator[Mam]:
    server.empty_database()
    for name in ("project", "home"):
        (tmp_path / name).mkdir()
    mam = Tracked(tmp_path / "project", tmp_path / "home")
    mam.env["MAM_STORE"] = pooler.url(request.param)
    assert mam("init").code == 0
    yield mam
    mam.end_all()


def _ok(ran: Ran) -> Ran:
    assert ran.code == 0, ran.stderr
    assert "Traceback" not in ran.stderr
    return ran


def _claimed(mam: Mam, *words: str) -> str:
    job = mam.register("work", "-s", "acts", *words)
    assert mam("pick", "-s", "acts").line == job
    return job


def test_acts_and_readers(mam: Mam) -> None:
    job = _claimed(mam)
    _ok(mam("heartbeat", job, "--attempt", "1"))
    _ok(mam("publish", job, "progress", "--attempt", "1"))
    _ok(mam("release", job, "--attempt", "1"))
    assert mam.status(job) == "pending"
    _ok(mam("edit", job, "--priority", "5"))
    assert mam.record(job)["priority"] == 5
    _ok(mam("pause", "--label", "acts"))
    assert mam("pick", "-s", "acts").code == 3
    _ok(mam("resume", "--label", "acts"))
    assert mam("pick", "-s", "acts").line == job
    _ok(mam("complete", job, "--attempt", "2", "--result", "r"))
    assert mam("result", job).out == "r"
    more = mam("continue", job, "also this").line
    assert mam.record(more)["continues"] == job
    _ok(mam("cancel", more))
    failed = _claimed(mam)
    _ok(mam("fail", failed, "--attempt", "1", "--reason", "no"))
    _ok(mam("seen", failed))
    again = mam("retry", failed).line
    assert mam("status", again).line == "pending"
    _ok(mam("cancel", again))
    for reader in ("show", "explain", "logs", "get"):
        assert "no" in _ok(mam(reader, failed)).out
    assert len(mam("list", "--json").json) == 4
    for words in (("stats",), ("workers",), ("agents", "list"), ("prune", "--older-than", "0s")):
        _ok(mam(*words))


def test_questions(mam: Mam) -> None:
    job = _claimed(mam)
    asking = mam.start("ask", "Which?", "--choice", "a", "--job", job, "--attempt", "1", "--wait")
    await_that(lambda: "Which?" in mam("questions").out, "the question is not listed")
    _ok(mam("answer", job, "a"))
    assert finish(asking).line == "a"
    _ok(mam("rules", "add", "deny", "--", "git", "push"))
    assert "deny" in _ok(mam("rules", "test", "--", "git", "push")).out
    _ok(mam("complete", job, "--attempt", "1"))


def test_waiting(mam: Mam) -> None:
    job = mam.register("work", "-s", "waiting")
    reading = mam.start("subscribe", job, "--json", "--timeout", "0", "--idle-timeout", "0")
    waiting = mam.start("wait", job)
    picking = mam.start("pick", "-s", "waiting", "--wait", "60")
    assert finish(picking).line == job
    _ok(mam("complete", job, "--attempt", "1"))
    assert _ok(finish(waiting)).code == 0
    assert [json.loads(line)["event"] for line in finish(reading).out.splitlines()] == ["completed"]


def test_a_worker_and_what_it_leaves(mam: Mam, gate: Gate) -> None:
    subprocess.run([program("git"), "init", "-q"], cwd=mam.here, check=True)
    job = mam.register(f"echo one; {gate.wait}; echo two >made.txt", "--artifact", "made.txt")
    worker = mam.start("worker", "-s", "shell")
    following = mam.start("output", job, "--follow")
    await_that(lambda: mam("output", job).stdout == b"one\n", "the output does not arrive")
    # a claim shows the worker at once, its own entry follows
    await_that(lambda: mam("workers", "--json").json[0]["worker"] is not None, "the worker has no entry")
    (live,) = mam("workers", "--json").json
    _ok(mam("workers", "drain", live["worker"]))
    gate.open()
    assert _ok(finish(following)).stdout == b"one\n"
    _ok(finish(worker))
    assert mam("artifacts", job, "--get", "made.txt").stdout == b"two\n"
    assert "+two" in _ok(mam("diff", job)).out
    assert b"hello" in _ok(mam("run", "echo hello", "--agent", "shell")).stdout


def test_a_relay(mam: Mam, broker: Mosquitto) -> None:
    job = mam.register("work", "-s", "relay")
    reader = Reader(broker, topic=f"python/mqtt/jobs/{job}/events")
    _ok(mam("complete", job))
    mam.env.update(broker.env)
    _ok(mam("relay", "--once"))
    assert '"event":"completed"' in reader.take(1)[0]


def test_the_server(mam: Mam) -> None:
    token = mam("token", "create", "t", "--scope", "admin").line
    with server_process(mam) as server, server.client(token) as client, client.stream("GET", "/events") as events:
        lines = events.iter_lines()
        assert next(lines) == ": mam"
        with server.client(token) as other:
            made = other.post("/jobs", json={"prompt": "p", "agent": "codex"}, headers={"idempotency-key": "k"})
            assert made.status_code == 201, made.text
            job = made.json()["job_id"]
            assert other.get(f"/jobs/{job}").json()["status"] == "pending"
        assert any(job in line for line in lines if line.startswith("data:"))


def test_the_tools_for_agents(mam: Mam) -> None:
    with mcp(mam) as client:
        job = client.call("submit", prompt="p", agent="codex", label="tools")["job_id"]
        assert client.call("wait", ids=[job], seconds=0.1)
        _ok(mam("complete", job))
        assert client.call("show", job=job)["status"] == "completed"
