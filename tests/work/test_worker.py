"""The worker in this process: how jobs end, are released, cancelled and checked, on every store."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from mam.config.settings import Config
from mam.testing.conformance.base import terminal_events
from mam.work.validator import trusted_validation
from mam.work.worker import DRAIN_NOW
from tests.waiting import Gate, await_that
from tests.work.repositories import make_repository
from tests.work.support import await_gone
from tests.work.worker_harness import Harness

if TYPE_CHECKING:
    from tests.work.support import PidPipe
from tests.work.worker_harness_fixtures import harness_fixture, quick_fixture

__all__ = ["harness_fixture", "quick_fixture"]

HERE = os.uname().nodename
LEAVES_THE_TREE = """
import os, sys, time
os.setsid()
with open(sys.argv[1], "w") as pids:
    pids.write(f"{os.getpid()}\\n")
time.sleep(1000)
"""
"""A program that leaves the process tree of its agent."""


class TestEnds:
    def test_one_that_does_it(self, harness: Harness) -> None:
        job = harness.ended("echo out; echo err >&2; echo $MAM_JOB_ID $MAM_ATTEMPT")
        assert (job.status, job.checked, job.ended_attempt, job.supervised) == ("completed", False, 1, False)
        assert job.result == f"out\n{job.job_id} 1"
        assert sorted(harness.output(job.job_id).split()) == sorted([b"out", b"err", job.job_id.encode(), b"1"])
        assert job.run is not None
        assert (job.run["exit_code"], job.run["signal"], job.run["host"]) == (0, None, HERE)
        assert job.run["place"] == str(harness.place)
        assert {"cpu_seconds", "memory_bytes", "wall_seconds", "process"} <= set(job.run)
        assert [event["event"] for event in harness.store.events(job.job_id)] == ["started", "completed"]

    def test_one_whose_exit_code_is_retried(self, quick: Harness) -> None:
        job = quick.ended("exit 3", retry_on_exit=True, max_retries=1)
        assert (job.status, job.waiting_for, job.reason, job.retries) == ("waiting", "retry", "exit code 3", 1)

    def test_a_failing_script_ends_the_job_in_error(self, harness: Harness) -> None:
        job = harness.ended("echo half; exit 3")
        assert (job.status, job.reason, job.result, job.retries) == ("error", "exit code 3", "half", 0)
        assert terminal_events(harness.store, job.job_id) == [("error", "error")]

    @pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
    def test_one_that_a_signal_ends(self, quick: Harness, number: signal.Signals) -> None:
        job = quick.ended(f"kill -{number.value} $$")
        assert (job.status, job.reason) == ("error", f"ended by signal {number.value}")
        assert job.run is not None
        assert (job.run["exit_code"], job.run["signal"]) == (None, number)

    def test_a_job_that_takes_too_long_ends_in_error(self, harness: Harness, pids: PidPipe) -> None:
        job = harness.ended(f"sh -c 'echo $$ > {pids.path}; sleep 1000' & echo $$ > {pids.path}; wait", timeout_sec=1)
        assert (job.status, job.reason) == ("error", "timed out after 1 s")
        pids.read(2)

    def test_a_silent_job_is_stopped_if_it_asks_for_that(self, quick: Harness) -> None:
        job = quick.ended("exec sleep 1000", idle_timeout_sec=1, on_idle="stop")
        assert (job.status, job.reason) == ("error", "silent for 1 s")

    def test_an_unknown_agent_ends_the_job_in_error(self, quick: Harness) -> None:
        job = quick.ended("do it", agent="nobody")
        assert job.status == "error"
        assert "nobody is not an agent" in str(job.reason)
        assert "config.toml" in str(job.reason)

    def test_a_script_of_a_mebibyte_runs(self, quick: Harness) -> None:
        job = quick.ended("# " + "x" * ((1 << 20) - 10) + "\nexit 4")
        assert job.reason == "exit code 4"

    def test_an_interpreter_that_is_not_there(self, quick: Harness) -> None:
        job = quick.ended("#!/no/such/interpreter\n")
        assert job.status == "error"
        assert "first line does not exist" in str(job.reason)


class TestHands:
    def test_a_worker_runs_as_many_jobs_as_it_may(self, harness: Harness, pids: PidPipe, gate: Gate) -> None:
        jobs = [harness.job(f"echo $$ > {pids.path}; {gate.wait}") for _ in range(4)]
        with harness.at_work(concurrency=3, drain=DRAIN_NOW):
            pids.read(3)
            assert [harness.get(job).status for job in jobs] == ["running"] * 3 + ["pending"]
            gate.open(len(jobs))
            pids.read(1)
            assert [harness.until(job).status for job in jobs] == ["completed"] * 4

    def test_labels_take_turns(self, quick: Harness) -> None:
        order = quick.folder / "order"
        for label in ("a", "a", "a", "b", "b", "c"):
            quick.job(f"echo {label} >> {order}", label=label)
        assert quick.drain(labels=("a", "b", "c")) == 6
        assert order.read_text().split() == ["a", "b", "c", "a", "b", "a"]

    def test_once_takes_one(self, quick: Harness) -> None:
        jobs = [quick.job("exit 0") for _ in range(3)]
        assert quick.drain(most=1) == 1
        assert [quick.get(job).status for job in jobs] == ["completed", "pending", "pending"]

    def test_only_this_job_until_it_has_ended(self, quick: Harness) -> None:
        first, second = quick.job("exit 0"), quick.job("exit 0")
        with quick.worker(job_id=second) as worker:
            worker.run()
        assert (quick.get(first).status, quick.get(second).status) == ("pending", "completed")

    def test_a_job_that_comes_later_is_taken_at_once(self, harness: Harness) -> None:
        with harness.at_work():
            assert harness.until(harness.job("exit 0")).status == "completed"
            assert harness.until(harness.job("exit 0")).status == "completed"

    def test_one_that_waits_for_a_retry_is_taken_again(self, quick: Harness) -> None:
        quick.config = Config(
            commands={"busy": {"argv": ["/bin/sh", "-c", "exit 75", "--", "{brief}"], "retry_codes": [75]}}
        )
        job = quick.ended("do it", agent="busy", max_retries=2)
        assert (job.status, job.waiting_for, job.retries, job.reason) == ("waiting", "retry", 1, "exit code 75")


class TestStopping:
    def test_handing_back_ends_the_tree_and_costs_nothing(self, harness: Harness, pids: PidPipe) -> None:
        job = harness.job(f"sh -c 'echo $$ > {pids.path}; sleep 1000' & echo $$ > {pids.path}; wait")
        with harness.at_work():
            both = pids.processes(2)
        await_gone(both)
        found = harness.get(job)
        assert (found.status, found.losses, found.retries, found.attempt) == ("pending", 0, 0, 1)
        assert any("released" in line for line in harness.said)

    def test_an_agent_that_answers_sigterm_with_success_is_not_done(self, quick: Harness, pids: PidPipe) -> None:
        job = quick.job(f"trap 'exit 0' TERM; echo $$ > {pids.path}; while :; do sleep 0.01; done")
        with quick.at_work():
            pids.read(1)
        assert quick.get(job).status == "pending"

    def test_a_stopping_worker_finishes_its_jobs(self, harness: Harness, pids: PidPipe) -> None:
        gate = harness.folder / "gate"
        os.mkfifo(gate)
        first = harness.job(f"echo $$ > {pids.path}; read line < {gate}")
        second = harness.job("exit 0")
        with harness.at_work() as worker:
            pids.read(1)
            worker.stop()
            gate.write_text("\n")
            assert harness.until(first).status == "completed"
        assert harness.get(second).status == "pending"

    def test_an_interrupted_check_has_no_result(self, quick: Harness, pids: PidPipe) -> None:
        script = quick.folder / "check"
        script.write_text(f"echo $$ > {pids.path}; sleep 1000\n")
        job = quick.job("exit 0", validation=trusted_validation(str(script)))
        with quick.at_work():
            checking = pids.processes(1)
        await_gone(checking)
        assert quick.get(job).status == "pending"

    def test_cancelled_while_it_is_checked(self, quick: Harness, pids: PidPipe) -> None:
        script = quick.folder / "check"
        script.write_text(f"echo $$ > {pids.path}; sleep 1000\n")
        job = quick.job("exit 0", validation=trusted_validation(str(script)))
        with quick.at_work():
            checking = pids.processes(1)
            quick.registry.cancel(job)
            await_gone(checking)
        assert quick.get(job).status == "cancelled"

    def test_a_check_may_take_longer_than_a_lease(self, quick: Harness) -> None:
        script = quick.folder / "check"
        script.write_text("sleep 2\n")
        job = quick.job("exit 0", validation=trusted_validation(str(script)))
        quick.drain(lease=1.0)
        assert (quick.get(job).status, quick.get(job).reason, quick.get(job).checked) == ("completed", None, True)


class TestCancelling:
    def test_it_reaches_grandchildren_and_detached_processes(self, harness: Harness, pids: PidPipe) -> None:
        away = harness.folder / "away.py"
        away.write_text(LEAVES_THE_TREE)
        job = harness.job(
            f"({sys.executable} -I -S {away} {pids.path} &)\n"
            f"sh -c 'echo $$ > {pids.path}; sleep 1000' & echo $$ > {pids.path}; wait"
        )
        with harness.at_work():
            three = pids.processes(3)
            harness.registry.cancel(job, reason="no longer needed")
            await_gone(three)
            said = f"{job[:8]} attempt 1: cancelled: no longer needed"
            await_that(lambda: harness.said[-1] == said, f"the worker did not notice: {harness.said}")
        found = harness.get(job)
        assert (found.status, found.reason) == ("cancelled", "no longer needed")
        assert terminal_events(harness.store, job) == [("error", "cancelled")]

    def test_one_that_ignores_sigterm(self, quick: Harness, pids: PidPipe) -> None:
        job = quick.job(f"trap '' TERM INT HUP; echo $$ > {pids.path}; while :; do sleep 0.05; done")
        with quick.at_work(grace=0.2):
            one = pids.processes(1)
            quick.registry.cancel(job)
            await_gone(one)


class TestChecks:
    @pytest.mark.parametrize(
        ("script", "problem"),
        [
            ("echo done > out.txt", None),
            ("true", "out.txt is not there"),
            (": > out.txt", "out.txt is empty"),
            ("ln -s /etc/passwd out.txt", "out.txt"),
            ("mkdir out.txt", "out.txt"),
            ("mkfifo out.txt", "out.txt"),
        ],
        ids=["good", "missing", "empty", "link", "directory", "pipe"],
    )
    def test_artifacts_decide_about_completion(self, quick: Harness, script: str, problem: str | None) -> None:
        job = quick.ended(f"{script}; mam_said_nothing=1", artifacts=["out.txt"])
        assert job.checks is not None
        if problem is None:
            assert (job.status, job.checked, job.reason) == ("completed", True, None)
            assert job.checks["artifacts"][0]["size"] == 5
        else:
            assert (job.status, job.checked) == ("error", None)
            assert problem in str(job.reason)
            assert job.run is not None
            assert job.run["exit_code"] == 0

    @pytest.mark.parametrize(("code", "status"), [(0, "completed"), (1, "error")])
    def test_a_validation_script_decides_about_completion(self, harness: Harness, code: int, status: str) -> None:
        script = harness.folder / "check"
        script.write_text(f"#!/bin/sh\necho looked at $MAM_JOB_ID\nexit {code}\n")
        job = harness.ended("echo I am done", validation=trusted_validation(str(script)))
        assert job.status == status
        assert job.checks is not None
        assert job.checks["script"]["output"] == f"looked at {job.job_id}\n"
        assert job.result == "I am done"

    def test_a_script_that_was_changed_is_not_run(self, quick: Harness) -> None:
        script = quick.folder / "check"
        script.write_text("exit 0\n")
        job = quick.ended(f"echo 'touch {quick.folder}/ran' > {script}", validation=trusted_validation(str(script)))
        assert job.status == "error"
        assert "has changed" in str(job.reason)
        assert not (quick.folder / "ran").exists()


class TestPlaces:
    def test_a_fresh_job_gets_an_empty_directory(self, harness: Harness) -> None:
        job = harness.ended("pwd; ls -A | wc -l", workspace="fresh")
        assert job.run is not None
        assert job.result == f"{job.run['place']}\n0"
        assert job.run["place"] != str(harness.place)

    def test_a_worktree_job_gets_a_branch(self, quick: Harness) -> None:
        repository = make_repository(quick.folder / "repository")
        job = quick.ended(
            "cat sub/deep/file.txt; git rev-parse --abbrev-ref HEAD", workdir=str(repository.path), workspace="worktree"
        )
        assert job.run is not None
        assert job.result == f"one\n{job.run['branch']}"
        assert job.run["branch"] in repository.branches()

    def test_a_directory_that_is_not_there_is_waited_for(self, harness: Harness) -> None:
        job = harness.ended("exit 0", workdir=str(harness.folder / "gone"))
        assert (job.status, job.waiting_for, job.retries, job.losses) == ("waiting", "place", 0, 0)
        _, words = harness.registry.explain(job.job_id)
        assert any("gone is not there" in line for line in words)

    def test_another_hosts_directory_is_mapped(self, quick: Harness) -> None:
        quick.config = Config(workdirs={"/home/elsewhere": str(quick.folder)})
        job = quick.ended("pwd", workdir="/home/elsewhere/place", origin_host="far")
        assert job.result == str(quick.place)

    def test_an_unmapped_workdir_is_reported(self, quick: Harness) -> None:
        job = quick.ended("pwd", workdir="/home/elsewhere/place", origin_host="far")
        assert job.status == "waiting"
        assert "[workdirs]" in str(job.reason)

    def test_a_directory_that_the_agent_removes_ends_the_job_in_error(self, quick: Harness) -> None:
        job = quick.ended(f"rm -r {quick.place}; echo gone", artifacts=["out.txt"])
        assert job.status == "error"
        assert (quick.folder / "place").exists() is False
