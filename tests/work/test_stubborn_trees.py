"""No process remains of trees that resist being ended."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from mam.machine.processes import is_alive, send_signal
from mam.work.process.runner import GuardianClient
from tests.waiting import await_that
from tests.work.stubborn import DAEMON, IGNORE, SLEEP, started
from tests.work.support import PATIENCE, await_gone, finish, python, shell, those_with

if TYPE_CHECKING:
    from tests.work.support import PidPipe


class TestTreesThatDoNotWantToEnd:
    def test_sigterm_comes_first_and_reaches_grandchildren(
        self, guardian: GuardianClient, log: str, pids: PidPipe
    ) -> None:
        polite = "trap 'echo bye; exit 0' TERM; echo $$ > $1; while :; do sleep 0.01; done"
        script = f"sh -c '{polite.replace(chr(39), chr(34))}' sh $1 & {polite}"
        run = guardian.start(shell(script, pids.path), log)
        both = pids.processes(2)
        run.stop(PATIENCE, "cancelled")
        ended = finish(run)
        assert (ended.stdout_tail, ended.exit_code) == ("bye\nbye\n", 0)
        assert (ended.tree_ended_because, ended.is_tree_gone) == ("cancelled", True)
        assert not any(map(is_alive, both))

    def test_every_process_gets_sigterm_also_below_one_that_ends_at_once(
        self, guardian: GuardianClient, log: str, pids: PidPipe
    ) -> None:
        """Ten generations; all but the last die of SIGTERM, and the last says that it was asked."""
        script = DAEMON + (
            "for _ in range(10):\n    if os.fork(): report(); time.sleep(1000)\n    os.setsid()\n"
            "signal.signal(signal.SIGTERM, lambda *_: (print('asked', flush=True), os._exit(0)))\n"
        )
        for _ in range(5):
            run = guardian.start(python(script + SLEEP, pids.path), log)
            pids.processes(11)
            run.stop(PATIENCE, "cancelled")
            assert finish(run).stdout_tail == "asked\n"

    def test_processes_that_ignore_sigterm(self, guardian: GuardianClient, log: str, pids: PidPipe) -> None:
        run = guardian.start(python(DAEMON + IGNORE + "os.fork(); os.fork()\n" + SLEEP, pids.path), log)
        four = pids.processes(4)
        run.stop(0.2, "cancelled")
        ended = finish(run)
        assert ended.signal == signal.SIGKILL
        assert not any(map(is_alive, four))

    def test_a_daemon_in_a_session_of_its_own_is_ended(self, guardian: GuardianClient, log: str, pids: PidPipe) -> None:
        run = guardian.start(python(DAEMON + IGNORE + "daemon()\n" + SLEEP, pids.path), log)
        both = pids.processes(2)
        assert len({os.getsid(process.pid) for process in both}) == 2
        run.stop(0.1, "cancelled")
        assert finish(run).is_tree_gone
        assert not any(map(is_alive, both))

    def test_a_daemon_that_outlives_the_agent(self, guardian: GuardianClient, log: str, pids: PidPipe) -> None:
        """It holds the pipes open too, and the run still ends."""
        run = guardian.start(python(DAEMON + IGNORE + "daemon(); daemon(); print('done')", pids.path), log)
        daemons = pids.processes(2)
        ended = finish(run)
        assert (ended.exit_code, ended.stdout_tail) == (0, "done\n")
        assert ended.tree_ended_because == "the agent ended and left processes behind"
        assert not any(map(is_alive, daemons))

    def test_a_process_that_ends_just_after_the_agent_is_not_killed(self, guardian: GuardianClient, log: str) -> None:
        """A shell does not wait for the far side of `> >(tee …)`."""
        run = guardian.start(shell("(trap '' TERM; sleep 0.05; echo last) & exit 5"), log)
        ended = finish(run)
        assert (ended.exit_code, ended.stdout_tail, ended.tree_ended_because) == (5, "last\n", None)

    def test_a_stopped_process_is_ended(self, guardian: GuardianClient, log: str, pids: PidPipe) -> None:
        script = "trap 'echo bye; exit 0' TERM; echo $$ > $1; while :; do sleep 0.01; done"
        run = guardian.start(shell(script, pids.path), log)
        [agent] = pids.processes(1)
        assert send_signal(agent, signal.SIGSTOP)
        run.stop(PATIENCE, "cancelled")
        assert finish(run).stdout_tail == "bye\n"

    @pytest.mark.parametrize(
        ("loop", "reports"),
        [
            # A chain in the agent's group: every process forks the next and ends.
            ("if os.fork(): os._exit(0)\n    if number == 20: report()", 1),
            # The same, each in a session of its own, which no signal to a group reaches.
            ("if os.fork(): os._exit(0)\n    os.setsid()\n    if number == 20: report()", 1),
            # A parent that makes children for ever, who leave its session.
            ("if os.fork() == 0: os.setsid(); time.sleep(1000)\n    if number == 20: report()", 1),
            # A tree that doubles, up to some hundreds.
            ("os.fork()\n    if number == 7: report(); time.sleep(1000)", 256),
        ],
        ids=["chain", "sessions", "nursery", "doubling"],
    )
    def test_a_fork_loop_is_ended(
        self, guardian: GuardianClient, log: str, pids: PidPipe, loop: str, reports: int
    ) -> None:
        script = f"{DAEMON}{IGNORE}import itertools\nfor number in itertools.count():\n    {loop}\n"
        run = guardian.start(python(script, pids.path), log)
        _, keeper = started(run)
        pids.read(reports)
        await_that(lambda: bool(those_with(pids.path)), "nothing runs")
        run.stop(0, "cancelled")
        assert finish(run).is_tree_gone
        assert those_with(pids.path) == []
        run.close()
        await_gone([keeper])

    def test_a_child_that_is_born_during_the_grace(self, guardian: GuardianClient, log: str, pids: PidPipe) -> None:
        script = DAEMON + "signal.signal(signal.SIGTERM, lambda *_: daemon())\n" + SLEEP
        run = guardian.start(python(script, pids.path), log)
        pids.processes(1)
        run.stop(1, "cancelled")
        [late] = pids.processes(1)
        assert finish(run).is_tree_gone
        assert not is_alive(late)

    def test_a_second_stop_shortens_the_grace(self, guardian: GuardianClient, log: str, pids: PidPipe) -> None:
        run = guardian.start(python(DAEMON + IGNORE + SLEEP, pids.path), log)
        pids.processes(1)
        run.stop(1000, "first")
        run.stop(0, "second")
        assert finish(run).tree_ended_because == "first"

    def test_an_agent_that_floods_is_ended_just_the_same(self, guardian: GuardianClient, log: str) -> None:
        run = guardian.start(shell("exec yes", log_limit=1 << 20), log)
        started(run)
        while (message := run.wait(PATIENCE)) is None or message.as_dict().get("stdout", 0) < 1 << 20:
            assert message is not None
        run.stop(0, "enough")
        ended = finish(run)
        assert (ended.signal, ended.tree_ended_because) == (signal.SIGKILL, "enough")
