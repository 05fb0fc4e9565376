"""No process is left when worker, keeper or guardian are killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from mam.machine.processes import ProcessId, identify, is_alive, send_signal
from mam.work.process.messages import Failed, Lost
from mam.work.process.runner import GuardianClient
from mam.work.process.tree import child_finder
from tests.waiting import await_that
from tests.work.stubborn import DAEMON, IGNORE, SLEEP, WorkerProcess, started
from tests.work.support import PATIENCE, await_gone, finish, python, shell

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mam.work.process.runner import Run
    from tests.work.support import PidPipe

KEEP_WHEN_ASKED = """
import socket, sys
from mam.work.process.guardian import _keep_when_asked
_keep_when_asked(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]), True)
"""


def keeper_after(guardian: GuardianClient, run: Run) -> ProcessId:
    """The one that was forked ahead: the only child that a guardian has when the keeper of its only run is gone."""
    pid, started = guardian.pid, run.started
    assert pid is not None
    assert started is not None
    assert started.keeper is not None
    used = started.keeper
    run.close()
    await_gone([used])
    await_that(lambda: len(set(child_finder()(pid)) - {used.pid}) == 1, "the guardian has not forked one other")
    process = identify(*set(child_finder()(pid)) - {used.pid})
    assert process is not None
    return process


@pytest.fixture
def killable(log: str, pids: PidPipe) -> Iterator[WorkerProcess]:
    """With an agent, a child of it and a daemon, who all ignore SIGTERM."""
    worker = WorkerProcess(log, python(DAEMON + IGNORE + "daemon(); os.fork()\n" + SLEEP, pids.path).argv)
    yield worker
    worker.close()


class TestKilled:
    def test_when_the_worker_is_killed_everything_ends(self, killable: WorkerProcess, pids: PidPipe) -> None:
        tree = pids.processes(3)
        killable.kill(killable.worker)
        await_gone([*tree, killable.agent, killable.keeper, killable.guardian])

    def test_when_worker_and_keeper_are_killed_the_agent_ends(self, killable: WorkerProcess, pids: PidPipe) -> None:
        tree = pids.processes(3)
        killable.kill(killable.keeper, killable.worker)
        await_gone([*tree, killable.guardian])

    def test_when_worker_and_guardian_are_killed_the_agent_ends(self, killable: WorkerProcess, pids: PidPipe) -> None:
        tree = pids.processes(3)
        killable.kill(killable.guardian, killable.worker)
        await_gone([*tree, killable.keeper])

    def test_keeper_and_guardian_the_worker_ends_what_it_can_name(self, killable: WorkerProcess, pids: PidPipe) -> None:
        """The daemon has left the tree for the first process of the system; this much is lost with both."""
        daemon, *rest = sorted(pids.processes(3), key=lambda process: os.getsid(process.pid) == killable.agent.pid)
        killable.kill(killable.guardian, killable.keeper)
        try:
            await_gone(rest)
        finally:
            send_signal(daemon, signal.SIGKILL)

    def test_ctrl_c_at_the_terminal_ends_everything(self, killable: WorkerProcess, pids: PidPipe) -> None:
        """Ctrl-C goes to the group of the terminal; guardian, keeper and agent are in other sessions."""
        tree = pids.processes(3)
        sessions = {os.getsid(process.pid) for process in (killable.guardian, killable.keeper, killable.agent)}
        assert os.getsid(killable.process.pid) not in sessions
        killable.process.send_signal(signal.SIGINT)
        await_gone([*tree, killable.keeper, killable.guardian])

    def test_when_the_worker_of_a_flooding_agent_is_killed_the_agent_ends(self, log: str, pids: PidPipe) -> None:
        worker = WorkerProcess(log, shell("echo $$ > $1; yes & exec yes", pids.path).argv)
        try:
            tree = pids.processes(1)
            worker.kill(worker.worker)
            await_gone([*tree, worker.keeper])
        finally:
            worker.close()

    def test_signals_to_the_process_group_do_not_end_the_guardian(self, guardian: GuardianClient, log: str) -> None:
        finish(guardian.start(shell("exit 0"), log))
        pid = guardian.pid
        assert pid is not None
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            os.kill(pid, number)
        assert finish(guardian.start(shell("exit 3"), log)).exit_code == 3
        assert guardian.pid == pid

    def test_sigterm_for_the_keeper_ends_its_run(self, guardian: GuardianClient, log: str, pids: PidPipe) -> None:
        run = guardian.start(shell("echo $$ > $1; exec sleep 1000", pids.path), log)
        pids.processes(1)
        keeper = started(run)[1]
        assert send_signal(keeper, signal.SIGTERM)
        await_gone([keeper])  # though the worker has read nothing yet: a worker that takes the job over waits for that
        ended = finish(run)
        assert (ended.signal, ended.tree_ended_because) == (signal.SIGTERM, "the keeper was asked to end")

    def test_the_worker_learns_that_the_keeper_died(self, guardian: GuardianClient, log: str, pids: PidPipe) -> None:
        run = guardian.start(python(DAEMON + IGNORE + "daemon()\n" + SLEEP, pids.path), log)
        tree = pids.processes(2)
        assert send_signal(started(run)[1], signal.SIGKILL)
        last = run.wait(PATIENCE)
        assert last == Lost(reason="the keeper of the run was killed", left=None)
        assert run.ended == last
        await_gone(tree)
        assert finish(guardian.start(shell("exit 3"), log)).exit_code == 3

    def test_a_stopped_keeper_is_bypassed(
        self, guardian: GuardianClient, log: str, pids: PidPipe, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """By its agent, for instance, which may send signals to whatever belongs to its user. The guardian would make
        it go on, so it is stopped too."""
        monkeypatch.setattr("mam.work.process.runner._OVERDUE_SECONDS", 0.1)
        monkeypatch.setattr("mam.work.process.takeover.KEEPER_SECONDS", 0.1)
        finish(guardian.start(shell("exit 0"), log))
        script = "kill -STOP $2; kill -STOP $PPID; echo $$ > $1; exec sleep 1000"
        run = guardian.start(shell(script, pids.path, str(guardian.pid)), log)
        tree = pids.processes(1)
        run.stop(0.1, "cancelled")
        *_, last = run.messages()
        assert last == Lost(reason="the keeper of the run does not answer", left=None)
        await_gone(tree)
        os.kill(guardian.pid or 0, signal.SIGCONT)

    def test_a_stopped_keeper_is_continued(self, guardian: GuardianClient, log: str, pids: PidPipe) -> None:
        run = guardian.start(shell("kill -STOP $PPID; echo $$ > $1; exec sleep 1000", pids.path), log)
        pids.processes(1)
        run.stop(0, "cancelled")
        assert finish(run).tree_ended_because == "cancelled"

    def test_other_runs_continue_when_one_keeper_dies(self, guardian: GuardianClient, log: str, pids: PidPipe) -> None:
        ones = [guardian.start(shell("echo $$ > $1; exec sleep 1000", pids.path), f"{log}{n}") for n in range(3)]
        agents = pids.processes(3)
        keepers = [started(run)[1] for run in ones]
        send_signal(keepers[1], signal.SIGKILL)
        assert isinstance(ones[1].wait(PATIENCE), Lost)
        assert [run.wait(0.05) for run in (ones[0], ones[2])] == [None, None]
        assert sum(map(is_alive, agents)) == 2
        for run in (ones[0], ones[2]):
            run.stop(1, "over")
            assert finish(run).signal == signal.SIGTERM

    def test_a_dead_guardian_is_replaced_and_its_runs_continue(
        self, guardian: GuardianClient, log: str, pids: PidPipe
    ) -> None:
        os.mkfifo(pids.path + "2")
        first = guardian.start(shell("echo $$ > $1; read line < $2; exit 6", pids.path, pids.path + "2"), log)
        pids.processes(1)
        pid = guardian.pid
        assert pid is not None
        old = identify(pid)
        assert old is not None
        assert send_signal(old, signal.SIGKILL)
        await_gone([old])
        assert finish(guardian.start(shell("exit 3"), log + "2")).exit_code == 3
        assert guardian.pid != pid
        with open(pids.path + "2", "w") as go:
            go.write("go\n")
        assert finish(first).exit_code == 6

    def test_a_pre_forked_keeper_takes_no_run_when_its_guardian_is_dead(self) -> None:
        """Also when it hears of both at once."""
        ours, theirs = socket.socketpair()
        life, life_end = os.pipe()
        os.close(life_end)
        with ours, theirs:
            ours.send(b"k")
            command = [sys.executable, "-c", KEEP_WHEN_ASKED]
            given = (theirs.fileno(), life)
            subprocess.run([*command, *map(str, given)], pass_fds=given, check=True, timeout=PATIENCE)
            os.close(life)
            assert theirs.recv(1) == b"k", "nobody took it"

    def test_a_guardian_killed_while_many_start(self, guardian: GuardianClient, tmp_path: Path) -> None:
        """Every run ends in one of the ways that are said, and none twice."""
        finish(guardian.start(shell("exit 0"), str(tmp_path / "first")))
        codes: list[int | None] = []

        def serve(thread: int) -> None:
            for number in range(20):
                run = guardian.start(shell("exit 3"), str(tmp_path / f"{thread}-{number}"))
                *_, last = run.messages()
                codes.append(getattr(last, "exit_code", None))
                assert not isinstance(last, Failed), last

        threads = [threading.Thread(target=serve, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for ended in range(10, 70, 10):
            await_that(lambda ended=ended: len(codes) >= ended, "the runs do not go on")  # type: ignore[misc]
            pid = guardian.pid
            process = None if pid is None else identify(pid)
            assert process is None or send_signal(process, signal.SIGKILL)
        for thread in threads:
            thread.join(PATIENCE)
        assert codes == [3] * 80

    def test_a_pre_forked_keeper_is_killed(self, guardian: GuardianClient, log: str) -> None:
        for number in range(5):
            run = guardian.start(shell(f"exit {number}"), log)
            assert finish(run).exit_code == number
            spare = keeper_after(guardian, run)
            assert send_signal(spare, signal.SIGKILL)
            await_gone([spare])

    def test_a_pre_forked_keeper_exits_with_the_guardian(self, guardian: GuardianClient, log: str) -> None:
        run = guardian.start(shell("exit 0"), log)
        finish(run)
        spare = keeper_after(guardian, run)
        process = identify(guardian.pid or 0)
        assert process is not None
        assert send_signal(process, signal.SIGKILL)
        await_gone([spare])

    def test_a_guardian_that_hangs_is_replaced(
        self, guardian: GuardianClient, log: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        finish(guardian.start(shell("exit 0"), log))
        pid = guardian.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        monkeypatch.setattr("mam.work.process.keeper_pool.READY_SECONDS", 0.3)
        for _ in range(2):  # the first may have its keeper already
            assert finish(guardian.start(shell("exit 3"), log)).exit_code == 3
        assert guardian.pid != pid

    def test_the_guardian_waits_for_its_last_run(self, log: str, pids: PidPipe) -> None:
        guardian = GuardianClient()
        run = guardian.start(shell("echo $$ > $1; exec sleep 1000", pids.path), log)
        agents = pids.processes(1)
        pid = guardian.pid
        assert pid is not None
        process = identify(pid)
        assert process is not None
        guardian.close(timeout=0.05)
        assert is_alive(process)
        assert is_alive(agents[0])
        run.stop(0, "over")
        assert finish(run).signal == signal.SIGKILL
        run.close()
        await_gone([process])
        await_that(lambda: identify(pid) is None, "a zombie is left")
