"""An idle keeper takes another run, and nothing of the earlier run affects it."""

from __future__ import annotations

import os
import signal
import socket
from threading import Thread
from typing import TYPE_CHECKING

from mam.errors import BadRecord
from mam.machine.processes import ProcessId, identify, send_signal
from mam.stores.memory import MemoryStore
from mam.work.output_log import read
from mam.work.process.channel import Channel
from mam.work.process.messages import Lost
from mam.work.process.runner import Run
from tests.waiting import await_that
from tests.work.support import PATIENCE, await_gone, descriptors, finish, python, shell, text_in
from tests.work.worker_harness import Harness

if TYPE_CHECKING:
    from pathlib import Path

    from mam.jobs.record import Job
    from mam.stores.port import Act
    from mam.work.process.messages import Ended
    from mam.work.process.runner import GuardianClient, Plan

BUSY = (
    "import time; block = bytearray(200 << 20); ends = time.process_time() + 0.5\nwhile time.process_time() < ends: 0"
)


def kept(guardian: GuardianClient, plan: Plan, log: str) -> tuple[ProcessId, Ended]:
    """The keeper, given back at the end of the run."""
    with guardian.start(plan, log) as run:
        ended = finish(run)
        guardian.return_keeper(run.take_idle_keeper())
        return keeper_of(run), ended


def keeper_of(run: Run) -> ProcessId:
    assert run.started is not None
    assert run.started.keeper is not None
    return run.started.keeper


def go_when_asked(keeper: socket.socket) -> None:
    with keeper:
        keeper.recv(1)


class TestTakenBack:
    def test_it_has_the_next_run(self, guardian: GuardianClient, log: str) -> None:
        first, _ = kept(guardian, shell("echo one"), log)
        second, ended = kept(guardian, shell("echo two; exit 2"), log)
        assert (first == second, ended.exit_code, text_in(log)) == (True, 2, "one\ntwo\n")

    def test_one_that_was_not_given_back_goes(self, guardian: GuardianClient, log: str) -> None:
        with guardian.start(shell("exit 0"), log) as run:
            finish(run)
        await_gone([keeper_of(run)])
        assert kept(guardian, shell("exit 0"), log)[0] != keeper_of(run)

    def test_each_run_has_its_own_figures(self, guardian: GuardianClient, log: str) -> None:
        _, hungry = kept(guardian, python(BUSY), log)
        _, modest = kept(guardian, python("print('x')"), log)
        assert hungry.peak_memory_bytes > 200 << 20 > modest.peak_memory_bytes
        assert hungry.user_seconds + hungry.system_seconds >= 0.5 > modest.user_seconds + modest.system_seconds
        assert (hungry.stdout_bytes, modest.stdout_bytes, modest.stdout_tail) == (0, 2, "x\n")

    def test_each_run_has_its_own_streams(self, guardian: GuardianClient, tmp_path: Path) -> None:
        keepers = set()
        for number in range(3):
            with guardian.start(
                shell("cat; echo bad >&2", stdin=b"%d" % number, tee=True), str(tmp_path / "log")
            ) as run:
                assert run.tee is not None
                ended = finish(run)
                assert (os.read(run.tee, 100), ended.stderr_bytes) == (b"%d" % number, 4)
                keepers.add(keeper_of(run))
                guardian.return_keeper(run.take_idle_keeper())
        assert len(keepers) == 1
        assert b"".join(read(str(tmp_path / "log"))) == b"0bad\n1bad\n2bad\n"

    def test_an_order_that_came_too_late_is_not_the_next_runs(self, guardian: GuardianClient, log: str) -> None:
        with guardian.start(shell("exit 0"), log) as run:
            finish(run)
            late = run.take_idle_keeper()
            assert late is not None
            late.send({"order": "keep_alive", "seconds": 0})
            late.send({"order": "stop", "grace": 0, "why": "late"})
            guardian.return_keeper(late)
        keeper, ended = kept(guardian, shell("sleep 0.3; exit 7"), log)
        assert (keeper, ended.exit_code, ended.tree_ended_because) == (keeper_of(run), 7, None)

    def test_a_keeper_with_unread_output_accepts_the_next_run(self, guardian: GuardianClient, log: str) -> None:
        """More than a pipe holds, and unread: the keeper waits for its tee when the next plan comes."""
        with guardian.start(shell("head -c 300000 /dev/zero", tee=True), log) as run, Run() as following:
            finish(run)
            keeper = run.take_idle_keeper()
            assert keeper is not None
            following.begin(keeper, shell("exit 7"), log, [])
            run.close()
            assert following.wait_accepted()
            assert finish(following).exit_code == 7

    def test_a_returned_keeper_has_no_more_descriptors(self, guardian: GuardianClient, log: str) -> None:
        plan = shell("cat", stdin=b"x", tee=True, tee_errors=True)
        keeper, _ = kept(guardian, plan, log)
        before = descriptors(keeper.pid)
        for _ in range(10):
            assert kept(guardian, plan, log)[0] == keeper
        await_that(lambda: descriptors(keeper.pid) <= before, "something does")

    def test_only_a_few_keepers_stay(self, guardian: GuardianClient, log: str) -> None:
        runs = [guardian.start(shell("exit 0"), f"{log}{number}") for number in range(12)]
        for run in runs:
            finish(run)
            guardian.return_keeper(run.take_idle_keeper())
        await_that(lambda: sum(identify(keeper_of(run).pid) == keeper_of(run) for run in runs) == 8, "not eight stay")


class TestKilledWhileIdle:
    def test_a_killed_idle_keeper_is_replaced(self, guardian: GuardianClient, log: str) -> None:
        for number in (signal.SIGKILL, signal.SIGTERM):
            keeper, _ = kept(guardian, shell("exit 0"), log)
            assert send_signal(keeper, number)
            await_gone([keeper])
            again, ended = kept(guardian, shell("exit 4"), log)
            assert (again != keeper, ended.exit_code) == (True, 4)

    def test_a_keeper_ends_on_request_although_its_messages_are_unread(
        self, guardian: GuardianClient, log: str
    ) -> None:
        """They are more than the wire holds, and the worker would wait for the rest of them for ever."""
        with guardian.start(python(r"print('\1' * 100_000)"), log) as run:
            run.wait()
            assert run.started is not None
            assert run.started.agent is not None
            agent = run.started.agent.pid
            await_that(lambda: identify(agent) is None, "the agent has not been waited for")
            assert send_signal(keeper_of(run), signal.SIGTERM)
            await_gone([keeper_of(run)])
            assert isinstance(run.wait(PATIENCE), Lost)

    def test_it_goes_with_its_guardian(self, guardian: GuardianClient, log: str) -> None:
        keeper, _ = kept(guardian, shell("exit 0"), log)
        assert guardian.pid is not None
        os.kill(guardian.pid, signal.SIGKILL)
        await_gone([keeper])
        again, ended = kept(guardian, shell("exit 4"), log)
        assert (again != keeper, ended.exit_code) == (True, 4)

    def test_all_of_them_just_when_they_are_wanted(self, guardian: GuardianClient, log: str) -> None:
        """A guardian is killed, and each that it forked is slow to see it: more of them than there are tries."""
        kept(guardian, shell("exit 0"), log)
        dying = [socket.socketpair() for _ in range(4)]
        for ours, theirs in dying:
            guardian.return_keeper(Channel(ours))
            Thread(target=go_when_asked, args=(theirs,), daemon=True).start()
        assert kept(guardian, shell("exit 4"), log)[1].exit_code == 4

    def test_it_goes_with_its_worker(self, guardian: GuardianClient, log: str) -> None:
        keeper, _ = kept(guardian, shell("exit 0"), log)
        guardian.close()
        await_gone([keeper])


class RejectingStore(MemoryStore):
    """A store in which the end of one job cannot be written."""

    refused: str | None = None

    def change(self, job_id: str, act: Act) -> Job:
        if job_id == self.refused:
            raise BadRecord(file="x.json", problem="not JSON")
        return super().change(job_id, act)


class TestOfAJob:
    def test_one_job_after_the_other_has_the_same(self, tmp_path: Path) -> None:
        harness = Harness(MemoryStore(), tmp_path)
        jobs = [harness.job(script) for script in ("exit 0", "exit 3", "exit 0")]
        harness.drain()
        found = [harness.get(job_id).run or {} for job_id in jobs]
        assert [run["exit_code"] for run in found] == [0, 3, 0]
        assert len({run["process"]["keeper"]["pid"] for run in found}) == 1

    def test_a_keeper_is_not_reused_if_the_end_was_not_written(self, tmp_path: Path) -> None:
        """Its next attempt will look for that keeper, and must not find another job's."""
        store = RejectingStore()
        harness = Harness(store, tmp_path)
        first, second = harness.job("echo $PPID"), harness.job("echo $PPID")
        store.refused = first
        harness.drain()
        assert [words for words in harness.said if "left to its lease" in words]
        assert (harness.get(second).status, harness.output(second) != harness.output(first)) == ("completed", True)
