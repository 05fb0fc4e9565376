"""Processes of an earlier attempt are found by their environment if there is no other trace, and no others are."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from mam.machine.processes import ProcessId, identify, is_alive, send_signal
from mam.stores.memory import MemoryStore
from mam.work.process.takeover import EarlierAttempts, end_earlier, end_orphans
from mam.work.state_dirs import store_mark
from mam.work.validator import trusted_validation
from tests.work.stubborn import DAEMON, IGNORE, SLEEP, WorkerProcess
from tests.work.support import PATIENCE, await_gone, python
from tests.work.test_pidfiles import lost_once
from tests.work.worker_harness import Harness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.work.support import PidPipe

    Start = Callable[..., ProcessId]

MINE = {"MAM_JOB_ID": "abc12345", "MAM_ATTEMPT": "1", "MAM_STORE_MARK": "here"}
SECOND = EarlierAttempts(job_id="abc12345", attempt=2, mark="here")
STUBBORN = DAEMON + IGNORE + SLEEP
ASKED = """
keeper = os.getppid()
def asked(*_):
    os.kill(keeper, signal.SIGSTOP)
    report()
if os.fork() == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, asked)
"""
"""A child in a session of its own that does not end when it is asked to, and sees to it that its keeper goes no further
than that."""


@pytest.fixture
def start(pids: PidPipe) -> Iterator[Start]:
    """Processes that ignore SIGTERM, with an environment of their own."""
    begun: list[subprocess.Popen[bytes]] = []

    def begin(environment: dict[str, str], script: str = STUBBORN) -> ProcessId:
        argv = python(script, pids.path).argv
        begun.append(subprocess.Popen(argv, env=environment, start_new_session=True))
        found = identify(pids.read(1)[0])
        assert found is not None
        return found

    yield begin
    for process in begun:
        process.kill()
        process.wait(PATIENCE)


def test_processes_that_the_keeper_had_only_sent_sigterm(log: str, pids: PidPipe) -> None:
    """Worker and guardian are killed, the keeper tells its tree to end, the agent does so, the keeper is killed."""
    words = [f"{name}={value}" for name, value in MINE.items()]
    worker = WorkerProcess(log, ("/usr/bin/env", *words, *python(DAEMON + ASKED + SLEEP, pids.path).argv))
    [child] = [process for process in pids.processes(2) if process != worker.agent]
    record = {"agent": worker.agent.to_json(), "keeper": worker.keeper.to_json()}
    try:
        worker.kill(worker.worker, worker.guardian)
        assert pids.read(1) == [child.pid]
        worker.kill(worker.keeper)
        await_gone([worker.keeper, worker.agent])
        assert end_earlier(record) is None
        assert is_alive(child), "it was to be found by its environment only"
        assert end_earlier(record, SECOND.find_orphans) is None
        assert not is_alive(child)
    finally:
        send_signal(child, 9)
        worker.close()


def test_all_processes_that_it_started_end_with_it(start: Start, pids: PidPipe) -> None:
    """With an environment like its own or another one, which leads nowhere once its parent has ended."""
    argv = python(STUBBORN, pids.path).argv
    child = f"if os.fork() == 0: os.setsid(); os.execve(sys.executable, {argv!r}, {{}})"
    both = [start(MINE, f"{DAEMON}{child}\n{SLEEP}"), *pids.processes(1)]
    assert end_orphans(SECOND.find_orphans) is None
    assert not any(map(is_alive, both))


def test_an_attempt_of_which_nothing_else_is_known_is_ended_before_the_next(tmp_path: Path, start: Start) -> None:
    harness = Harness(MemoryStore(), tmp_path)
    job_id = lost_once(harness, "true")
    stray = start({**MINE, "MAM_JOB_ID": job_id, "MAM_STORE_MARK": store_mark(str(tmp_path / "work"))})
    harness.drain()
    job = harness.get(job_id)
    assert (job.status, job.attempt, "earlier" in (job.run or {})) == ("completed", 2, False)
    assert not is_alive(stray)


def test_every_process_of_a_job_can_be_found(tmp_path: Path) -> None:
    harness = Harness(MemoryStore(), tmp_path)
    look = "printenv MAM_JOB_ID MAM_ATTEMPT MAM_STORE_MARK"
    (tmp_path / "check").write_text(look)
    job = harness.ended(look, validation=trusted_validation(str(tmp_path / "check")))
    words = f"{job.job_id}\n1\n{store_mark(str(tmp_path / 'work'))}\n"
    assert harness.output(job.job_id).decode() == words
    assert (job.checks or {})["script"]["output"] == words


@pytest.mark.parametrize(
    "other",
    [
        {"MAM_JOB_ID": "abc12346"},
        {"MAM_JOB_ID": "abc1234"},
        {"MAM_ATTEMPT": "2"},
        {"MAM_ATTEMPT": "3"},
        {"MAM_ATTEMPT": ""},
        {"MAM_ATTEMPT": "-1"},
        {"MAM_ATTEMPT": "1" * 10_000},
        {"MAM_STORE_MARK": "there"},
        {"MAM_STORE_MARK": ""},
        {"X": "MAM_JOB_ID=abc12345", "MAM_JOB_ID": ""},
    ],
    ids=str,
)
def test_others_are_not_touched(start: Start, other: dict[str, str]) -> None:
    """Another job, this or a later attempt, another store, a person's shell after `mam pick --export`."""
    process = start({**MINE, **other})
    assert SECOND.find_orphans() == []
    assert end_orphans(SECOND.find_orphans) is None
    assert is_alive(process)


def test_a_process_that_changed_its_environment_is_not_found(start: Start, pids: PidPipe) -> None:
    argv = python(STUBBORN, pids.path).argv
    process = start(MINE, f"import os, sys\nos.execve(sys.executable, {argv!r}, {{}})")
    assert SECOND.find_orphans() == []
    assert is_alive(process)


def test_oneself_is_not_ended() -> None:
    """A worker inside of the earlier attempt, which takes over the very job it runs in."""
    script = (
        "from mam.work.process.takeover import EarlierAttempts\nfrom mam.work.process.takeover import end_orphans\n"
        f"print(end_orphans(EarlierAttempts(job_id={SECOND.job_id!r}, attempt=2, mark={SECOND.mark!r}).find_orphans))"
    )
    asked = subprocess.run(
        ["/bin/sh", "-c", '"$@"; exit 0', "sh", sys.executable, "-c", script], env={**os.environ, **MINE},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert asked.stdout == "this worker runs inside the earlier attempt, which was therefore not ended\n"
