"""`mam worker` as a process: signals, kills, a store that goes away, people."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.cli.command import Mam, finish
from tests.disks import fill
from tests.waiting import Gate, await_that
from tests.work.support import PATIENCE, await_gone

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.work.support import PidPipe
from tests.work.worker_commands import Working, ended, heard, made, mam_fixture, no_process_left, plain_fixture

__all__ = ["mam_fixture", "no_process_left", "plain_fixture"]


class TestOrders:
    def test_once_runs_one_job(self, mam: Mam) -> None:
        mam("init")
        mam("worker", "-s", "shell", "--once").failed(3, "No pending job for shell")
        first, second = mam.register("echo one"), mam.register("echo two")
        ran = mam("worker", "-s", "shell", "--once")
        assert (ran.code, ran.out) == (0, "")
        assert "completed" in ran.stderr
        assert (mam("result", first).out, mam.status(second)) == ("one", "pending")

    def test_drain_runs_until_no_job_is_left(self, mam: Mam) -> None:
        jobs = [mam.register(f"echo {number}") for number in range(5)]
        assert mam("worker", "-s", "shell", "--drain", "--concurrency", "2").code == 0
        assert [mam("result", job).out for job in jobs] == ["0", "1", "2", "3", "4"]

    def test_drain_waits_for_jobs_that_wait_are_paused_or_run_elsewhere(self, mam: Mam) -> None:
        waiting, paused = mam.register("echo one", "--at", "+1h"), mam.register("echo two")
        held, other = mam.register("echo three", "--priority", "9"), mam.register("echo x", "-s", "other")
        assert mam("pick", "-s", "shell").line == held
        mam("pause", "-s", "shell")
        with Working(mam, "-s", "shell", "--drain") as worker:
            heard(worker, b"the worker waits for those that wait, are paused or run elsewhere")
            mam("complete", held)
            mam("status", waiting, "--set", "pending")
            mam("resume", "-s", "shell")
            assert finish(worker).code == 0
        assert [mam("result", job).out for job in (waiting, paused)] == ["one", "two"]
        assert mam.status(other) == "pending"

    def test_drain_now_counts_the_jobs_that_are_left(self, mam: Mam) -> None:
        done = mam.register("echo done")
        mam.register("echo one", "--at", "+1h")
        mam.register("echo two", "--after", mam.register("echo three", "-s", "other"))
        ran = mam("worker", "-s", "shell", "--drain=now")
        assert (ran.code, ran.stderr.splitlines()[-1]) == (
            3, "mam: Jobs of shell are left: 2 waiting; `mam explain JOB` reports why.",
        )  # fmt: skip
        assert mam.status(done) == "completed"
        assert mam("worker", "-s", "other", "--drain", "now").code == 0
        mam("worker", "-s", "other", "--drain=soon").failed(2, "--drain takes no value, or =now")

    def test_three_of_twenty_jobs_ask_and_the_others_are_done(self, plain: Mam) -> None:
        """Overnight, with one worker and two places: the questions are there in the morning, and the rest is done."""
        ask = f'test "$({sys.executable} -m mam ask "Go on?" --choice yes --choice no --wait)" = yes'
        jobs = [plain.register(ask if number in (0, 1, 10) else f"echo {number}") for number in range(20)]
        asking = [jobs[0], jobs[1], jobs[10]]
        with Working(plain, "-s", "shell", "--drain", "--concurrency", "2") as worker:
            assert plain("wait", *(job for job in jobs if job not in asking), "--timeout", "60").code == 0
            await_that(lambda: len(plain("questions", "--json").json) == 3)
            assert [one["job_id"] for one in plain("questions", "--json").json] == asking
            for job in asking:
                assert plain("answer", job, "yes").code == 0
            assert finish(worker).code == 0
        assert {plain.status(job) for job in jobs} == {"completed"}

    def test_a_job_that_asks_leaves_its_place_to_others(self, mam: Mam) -> None:
        """One question must not stop the night's work."""
        asking = mam.register(f"test \"$({sys.executable} -m mam ask 'Go on?' --wait)\" = yes && echo went on")
        others = [mam.register(f"echo {number}") for number in range(3)]
        with Working(mam, "-s", "shell", "--drain", "--concurrency", "1") as worker:
            assert mam("wait", *others, "--timeout", "60").code == 0
            assert "It asks a person" in mam("explain", asking).out
            assert mam.status(asking) == "running"
            mam("answer", asking, "yes")
            assert finish(worker).code == 0
        assert mam("result", asking).out.endswith("went on")

    def test_only_so_many_jobs_that_ask_leave_their_place(self, plain: Mam) -> None:
        """The next one keeps its place, so that a night cannot end with a hundred agents that wait."""
        plain("config", "set", "questions.parked", "1")
        ask = f"{sys.executable} -m mam ask 'Go on?' --wait"
        asking = [plain.register(ask) for _ in range(2)]
        behind = plain.register("echo behind")
        with Working(plain, "-s", "shell", "--drain", "--concurrency", "1") as worker:
            await_that(lambda: len(plain("questions", "--json").json) == 2)
            for _ in range(2):
                assert plain("wait", behind, "--timeout", "1").code == 5
            assert plain.status(behind) == "pending"
            assert plain("answer", asking[0], "yes").code == 0
            assert plain("wait", behind).code == 0
            assert plain("answer", asking[1], "yes").code == 0
            assert finish(worker).code == 0

    def test_the_audit_log_is_complete_when_it_ends(self, plain: Mam) -> None:
        job = plain.register("exit 0")
        plain("worker", "-s", "shell", "--drain")
        lines = (plain.here / ".mam" / "delegate_job_logs" / job / "events.ndjson").read_text().splitlines()
        moves = [line for line in map(json.loads, lines) if line["event"] == "status_changed"]
        assert [move["to"] for move in moves] == ["running", "completed"]

    def test_invalid_options_are_usage_errors(self, plain: Mam) -> None:
        plain("init")
        plain("worker").failed(2, "mam worker -s LABEL")
        plain("worker", "-s", "shell", "--concurrency", "0").failed(2, "between 1 and")
        plain("worker", "-s", "shell", "--lease", "0").failed(2, "lease")
        plain("worker", "--job", "f" * 32).failed(1, "No job")
        plain("worker", "-s", "shell", "--store", str(plain.here / "nowhere")).failed(9, "No store")


class TestSignals:
    def test_sigterm_returns_jobs_to_pending(self, mam: Mam, pids: PidPipe) -> None:
        job = mam.register(f"echo $$ > {pids.path}; exec sleep 1000")
        with Working(mam, "-s", "shell") as worker:
            agent = pids.processes(1)
            worker.terminate()
            assert finish(worker).code == 0
            await_gone(agent)
        record = mam.record(job)
        assert (record["status"], record["losses"], record["attempt"]) == ("pending", 0, 1)

    def test_ctrl_c_lets_running_jobs_finish(self, mam: Mam, pids: PidPipe, gate: Gate) -> None:
        first = mam.register(f"echo $$ > {pids.path}; {gate.wait}")
        second = mam.register("exit 0")
        with Working(mam, "-s", "shell") as worker:
            pids.read(1)
            worker.send_signal(signal.SIGINT)
            heard(worker, b"finishing")
            gate.open()
            assert finish(worker).code == 0
        assert (mam.status(first), mam.status(second)) == ("completed", "pending")

    def test_a_second_ctrl_c_returns_jobs_to_pending(self, mam: Mam, pids: PidPipe) -> None:
        job = mam.register(f"echo $$ > {pids.path}; exec sleep 1000")
        with Working(mam, "-s", "shell") as worker:
            agent = pids.processes(1)
            worker.send_signal(signal.SIGINT)
            heard(worker, b"finishing")
            worker.send_signal(signal.SIGINT)
            assert finish(worker).code == 0
            await_gone(agent)
        assert mam.status(job) == "pending"

    def test_an_idle_worker_ends_at_once(self, mam: Mam) -> None:
        mam("init")
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with Working(mam, "-s", "shell") as worker:
                heard(worker, b"working for shell")
                worker.send_signal(number)
                assert finish(worker).code == 0

    def test_nohup_is_respected(self, plain: Mam) -> None:
        job = plain.register("exit 0", "--at", "+2s")
        with subprocess.Popen(
            ["nohup", sys.executable, "-m", "mam", "worker", "-s", "shell"], env=plain.env, cwd=plain.here,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        ) as worker:  # fmt: skip
            heard(worker, b"working for")
            worker.send_signal(signal.SIGHUP)
            assert ended(plain, job)["status"] == "completed"
            worker.terminate()

    def test_a_killed_worker_loses_nothing(self, mam: Mam, pids: PidPipe) -> None:
        script = f"echo $$ > {pids.path}; [ $MAM_ATTEMPT = 2 ] || exec sleep 1000; echo attempt $MAM_ATTEMPT"
        job = mam.register(script)
        with Working(mam, "-s", "shell", "--lease", "2") as worker:
            agent = pids.processes(1)
            worker.kill()
            await_gone(agent)
        with Working(mam, "-s", "shell"):
            record = ended(mam, job)
        assert (record["status"], record["result"], record["losses"]) == ("completed", "attempt 2", 1)

    def test_a_stopped_worker_loses_its_job_without_a_failure(self, plain: Mam, pids: PidPipe) -> None:
        """Ctrl-Z: the keeper ends the agent before another worker may claim, and the job has not failed."""
        job = plain.register(f"echo $$ > {pids.path}; [ $MAM_ATTEMPT = 2 ] || exec sleep 1000")
        with Working(plain, "-s", "shell", "--lease", "6") as worker:
            agent = pids.processes(1)
            worker.send_signal(signal.SIGSTOP)
            await_gone(agent)
            worker.send_signal(signal.SIGCONT)
            record = ended(plain, job)
        assert (record["status"], record["losses"]) == ("completed", 0)


class TestTheStoreIsAway:
    def test_a_moved_files_store_is_waited_for(self, plain: Mam, pids: PidPipe, gate: Gate) -> None:
        job = plain.register(f"echo $$ > {pids.path}; {gate.wait}; echo done")
        jobs, away = plain.here / ".mam" / "jobs", plain.here / ".mam" / "away"
        with Working(plain, "-s", "shell") as worker:
            agent = pids.processes(1)
            jobs.rename(away)
            gate.open()
            await_gone(agent)
            heard(worker, b"No store")
            away.rename(jobs)
            record = ended(plain, job)
            assert (record["status"], record["result"], record["attempt"]) == ("completed", "done", 1)
            assert ended(plain, plain.register("echo next"))["result"] == "next"

    def test_a_locked_database_is_waited_for(self, tmp_path: Path, pids: PidPipe) -> None:
        mam = made(tmp_path, "sqlite")
        mam.env["MAM_LOCK_WAIT_SECONDS"] = "0.2"
        job = mam.register(f"echo $$ > {pids.path}; echo done")
        with sqlite3.connect(tmp_path / "jobs.db", isolation_level=None) as other:
            other.execute("BEGIN IMMEDIATE")
            with Working(mam, "-s", "shell") as worker:
                heard(worker, b"jobs.db: others have kept it locked for 0.2 s; trying until it works")
                other.execute("ROLLBACK")
                assert ended(mam, job)["result"] == "done"
        other.close()

    def test_a_full_disk_is_waited_for(self, small_disk: Path, pids: PidPipe, gate: Gate) -> None:
        mam = made(small_disk, "files")
        job = mam.register(f"echo $$ > {pids.path}; {gate.wait}; echo done")
        with Working(mam, "-s", "shell") as worker:
            agent = pids.processes(1)
            ballast = fill(small_disk)
            gate.open()
            await_gone(agent)
            heard(worker, b"; trying until it works")
            ballast.unlink()
            record = ended(mam, job)
            assert (record["status"], record["attempt"]) == ("completed", 1)


def test_its_own_disk_is_full(small_disk: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The store is on another disk. The worker reports it, backs off, and stops during the pause when asked."""
    mam = made(tmp_path_factory.mktemp("elsewhere"), "files")
    mam.env["XDG_STATE_HOME"] = str(small_disk)
    job = mam.register("echo done")
    ballast = fill(small_disk)
    with Working(mam, "-s", "shell") as worker:
        heard(worker, b"cannot run it now: No space left on device; the next claim is in 1 s")
        heard(worker, b"the next claim is in 2 s")
        worker.terminate()
        assert worker.wait(PATIENCE) == 0
    assert "cannot run it now: No space left on device" in mam("explain", job).out
    ballast.unlink()
    assert mam("worker", "-s", "shell", "--once").code == 0
    record = mam.record(job)
    assert (record["status"], record["losses"], record["retries"], record["reason"]) == ("completed", 0, 0, None)


class TestFromInside:
    """An agent's own verbs, through the door."""

    def test_what_the_agent_reported_and_what_mam_checked(self, mam: Mam) -> None:
        script = 'mam publish progress --detail "half way" && mam complete --result "all done"'
        job = mam.register(script, "--artifact", "out.txt")
        assert mam("worker", "-s", "shell", "--once").code == 0
        record = mam.record(job)
        assert record["status"] == "error"
        assert "out.txt is not there" in record["reason"]
        assert (record["said"]["status"], record["said"]["result"]) == ("completed", "all done")
        assert record["checks"]["problem"] == record["reason"]

    def test_an_agent_completes_its_own_job(self, mam: Mam) -> None:
        job = mam.register(
            'echo x > out.txt; mam publish progress --detail "half"; mam complete --result yes', "--artifact", "out.txt"
        )
        mam("worker", "-s", "shell", "--once")
        record = mam.record(job)
        assert (record["status"], record["checked"], record["result"]) == ("completed", True, "yes")

    def test_it_wants_another_try(self, mam: Mam) -> None:
        job = mam.register("mam fail --retryable --reason busy")
        mam("worker", "-s", "shell", "--once")
        record = mam.record(job)
        assert (record["status"], record["waiting_for"], record["retries"]) == ("waiting", "retry", 1)

    def test_an_agent_registers_a_job_and_waits_for_it(self, mam: Mam) -> None:
        child = 'child=$(mam register "echo from the child" --agent shell)'
        script = f"{child} && mam wait $child >/dev/null && mam result $child"
        job = mam.register(script)
        assert mam("worker", "-s", "shell", "--drain", "--concurrency", "2").code == 0
        record = mam.record(job)
        assert (record["status"], record["result"]) == ("completed", "from the child")
        children = [found for found in mam("list", "--json").json if found["parent_id"] == job]
        assert [(child["depth"], child["status"]) for child in children] == [(1, "completed")]

    def test_children_are_limited_in_depth(self, plain: Mam) -> None:
        """Each registers the next with the same script; the fourth below the first is refused."""
        script = "mam register --agent shell --prompt-file next.sh"
        (plain.here / "next.sh").write_text(script)
        plain.register(script)
        plain("worker", "-s", "shell", "--drain")
        jobs = plain("list", "--json").json
        assert sorted(job["depth"] for job in jobs) == [0, 1, 2, 3]
        deepest = max(jobs, key=lambda job: job["depth"])
        assert deepest["status"] == "error"

    def test_a_whole_tree_is_called_off(self, mam: Mam, pids: PidPipe) -> None:
        (mam.here / "child.sh").write_text(f"echo $$ > {pids.path}; exec sleep 1000")
        script = f"echo $$ > {pids.path}; mam register --agent shell --prompt-file child.sh; exec sleep 1000"
        job = mam.register(script)
        with Working(mam, "-s", "shell", "--concurrency", "2", "--grace", "1"):
            both = pids.processes(2)
            assert len(mam("cancel", job, "--tree").out.splitlines()) == 2
            await_gone(both)
        assert {found["status"] for found in mam("list", "--json").json} == {"cancelled"}


class TestPeople:
    def test_a_person_completes_the_job_that_the_worker_shows(self, mam: Mam) -> None:
        mam("init")
        job = mam("register", "look at it", "--agent", "human", "--artifact", "report.md").line
        with Working(mam, "-s", "human") as worker:
            assert worker.stdout is not None
            brief = b""
            while b"What mam checks" not in brief:
                brief += os.read(worker.stdout.fileno(), 4096)
            assert b"look at it" in brief
            assert f"mam complete {job}".encode() in brief
            (mam.here / "report.md").write_text("fine")
            mam("complete", job, "--result", "seen")
            record = ended(mam, job)
        assert (record["status"], record["checked"], record["result"]) == ("completed", True, "seen")

    def test_the_default_agent_may_be_a_command_of_the_settings(self, plain: Mam) -> None:
        settings = plain.home / "config" / "mam"
        settings.mkdir(parents=True)
        (settings / "config.toml").write_text(
            'default_agent = "mine"\n[commands.mine]\nargv = ["cat"]\nprompt = "stdin"\n'
        )
        ran = plain("run", "say hello")
        assert ran.code == 0, ran.stderr
        assert "say hello" in ran.out
