"""An earlier attempt on this host is ended before the next one starts; mam reports what it could not end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from mam.machine.processes import identify, is_alive, send_signal
from mam.work.process.messages import Ended, Started
from mam.work.process.takeover import end_earlier
from tests.work.stubborn import DAEMON, IGNORE, SLEEP, WorkerProcess
from tests.work.support import PATIENCE, await_gone, python, shell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.work.process.runner import GuardianClient
    from tests.work.support import PidPipe


def record(killable: WorkerProcess) -> dict[str, Any]:
    return {"agent": killable.agent.to_json(), "keeper": killable.keeper.to_json()}


@pytest.fixture
def killable(log: str, pids: PidPipe) -> Iterator[WorkerProcess]:
    worker = WorkerProcess(log, python(DAEMON + IGNORE + "daemon(); os.fork()\n" + SLEEP, pids.path).argv)
    yield worker
    worker.close()


def test_a_run_whose_worker_lives_or_hangs(killable: WorkerProcess, pids: PidPipe) -> None:
    tree = pids.processes(3)
    send_signal(killable.worker, signal.SIGSTOP)
    assert end_earlier(record(killable)) is None
    assert not any(map(is_alive, [*tree, killable.keeper, killable.agent]))


def test_a_worker_learns_why_its_run_was_ended(guardian: GuardianClient, log: str, pids: PidPipe) -> None:
    run = guardian.start(shell("echo $$ > $1; exec sleep 1000", pids.path), log)
    pids.processes(1)
    started = run.wait(PATIENCE)
    assert isinstance(started, Started)
    assert end_earlier(started.to_json()) is None
    ended = run.wait(PATIENCE)
    assert isinstance(ended, Ended)
    assert ended.tree_ended_because == "the keeper was asked to end"


def test_a_keeper_that_hangs_is_ended_with_its_tree(killable: WorkerProcess, pids: PidPipe) -> None:
    """Stopped, it can do nothing about the SIGTERM it is sent first."""
    tree = pids.processes(3)
    send_signal(killable.keeper, signal.SIGSTOP)
    assert end_earlier(record(killable)) is None
    assert not any(map(is_alive, [*tree, killable.keeper]))


def test_an_agent_whose_keeper_guardian_and_worker_were_killed_is_ended(killable: WorkerProcess, pids: PidPipe) -> None:
    daemon, *rest = sorted(pids.processes(3), key=lambda process: os.getsid(process.pid) == killable.agent.pid)
    killable.kill(killable.worker, killable.guardian, killable.keeper)
    try:
        await_gone([killable.keeper])
        assert is_alive(killable.agent)
        assert end_earlier(record(killable)) is None
        assert not any(map(is_alive, rest))
    finally:
        send_signal(daemon, signal.SIGKILL)


def test_children_that_outlive_an_agent_which_ends_when_asked(log: str, pids: PidPipe) -> None:
    """They ignore SIGTERM, are in sessions of their own, and nothing leads to them once their parent is gone."""
    stubborn = "if os.fork() == 0:\n    os.setsid()\n    " + IGNORE + "    report(); time.sleep(1000)\n"
    worker = WorkerProcess(log, python(DAEMON + stubborn + SLEEP, pids.path).argv)
    both = pids.processes(2)
    try:
        worker.kill(worker.worker, worker.guardian, worker.keeper)
        await_gone([worker.keeper])
        assert end_earlier(record(worker)) is None
        assert not any(map(is_alive, both))
    finally:
        worker.close()
        for process in both:
            send_signal(process, signal.SIGKILL)


def test_processes_of_a_dead_agent_are_named_and_not_ended(killable: WorkerProcess, pids: PidPipe) -> None:
    """The number of a session proves nothing once its leader is gone."""
    tree = pids.processes(3)
    [child] = [one for one in tree if one != killable.agent and os.getsid(one.pid) == killable.agent.pid]
    killable.kill(killable.worker, killable.guardian, killable.keeper, killable.agent)
    try:
        await_gone([killable.keeper, killable.agent])
        left = end_earlier(record(killable))
        assert left == f"process {child.pid} may be left of the earlier attempt, which is not certain"
        assert is_alive(child)
    finally:
        for process in tree:
            send_signal(process, signal.SIGKILL)


def test_an_attempt_that_has_ended_leaves_nothing_to_end(guardian: GuardianClient, log: str) -> None:
    run = guardian.start(shell("exit 0"), log)
    started, *_ = run.messages()
    assert isinstance(started, Started)
    assert end_earlier(started.to_json()) is None


class TestNotTouched:
    @pytest.fixture
    def bystander(self) -> Iterator[subprocess.Popen[bytes]]:
        process = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        yield process
        assert process.poll() is None
        process.kill()
        process.wait()

    def test_a_reused_pid_is_not_signalled(self, bystander: subprocess.Popen[bytes]) -> None:
        process = identify(bystander.pid)
        assert process is not None
        stranger = process.replace(start_time=process.start_time - 1).to_json()
        assert end_earlier({"agent": stranger, "keeper": stranger}) is None

    def test_processes_of_another_host_or_boot_are_not_touched(self, bystander: subprocess.Popen[bytes]) -> None:
        process = identify(bystander.pid)
        assert process is not None
        there: dict[str, Any] = {"agent": process.replace(boot_id="other").to_json()}
        assert end_earlier(there) == (
            "the earlier attempt ran on another host, or before a restart and could not be ended from here"
        )
        there["host"] = "build7"
        assert end_earlier(there) == "the earlier attempt ran on build7 and could not be ended from here"
        assert end_earlier(there, host="build7") is None  # it has been restarted since, which ended everything

    def test_processes_of_another_container_are_not_touched(self, bystander: subprocess.Popen[bytes]) -> None:
        process = identify(bystander.pid)
        assert process is not None
        there = {"agent": process.replace(namespace=7).to_json()}
        assert end_earlier(there) == (
            "the earlier attempt ran in another container of this machine and could not be ended from here"
        )

    @pytest.mark.parametrize("junk", [{}, {"agent": None, "keeper": 12}, {"agent": {"pid": -1}}])
    def test_a_record_without_processes_is_reported(self, junk: dict[str, Any]) -> None:
        assert end_earlier(junk) == "the processes of the earlier attempt are not known, so they could not be ended"

    def test_a_process_does_not_end_its_own_tree(self, guardian: GuardianClient, log: str, pids: PidPipe) -> None:
        """An agent that starts a worker which takes over the very job it runs in."""
        script = (
            "import os\nfrom mam.machine.processes import identify\nfrom mam.work.process.takeover import end_earlier\n"
            "print(end_earlier({'agent': identify(os.getppid()).to_json()}))"
        )
        asked = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        assert asked.stdout == "this worker runs inside the earlier attempt, which was therefore not ended\n"
