"""Workers that are killed, sessions that end or restart: the job is never typed twice, lost, or completed wrongly."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.live.harness import LiveHarness
from tests.waiting import await_that

pytestmark = pytest.mark.external


def test_a_session_still_at_its_job_is_watched_by_the_next_worker(harness: LiveHarness) -> None:
    harness.agent()
    gate = harness.folder / "gate"
    job_id = harness.register(f"agent: await {gate}\nagent: write notes.txt made", "--artifact", "notes.txt")
    first = harness.work()
    await_that(lambda: harness.job(job_id).get("run") is not None)
    harness.end(first)
    second = harness.work("--drain")
    await_that(lambda: harness.job(job_id)["attempt"] == 2 and harness.job(job_id)["status"] == "running")
    gate.touch()

    second.communicate(timeout=60)

    job = harness.job(job_id)
    assert (job["status"], job["attempt"], job["losses"], job["checked"]) == ("completed", 2, 1, True)
    assert len(harness.typed()) == 1


def test_a_turn_that_ended_while_no_worker_was_there_is_judged_by_the_next(harness: LiveHarness) -> None:
    harness.agent()
    gate = harness.folder / "gate"
    job_id = harness.register(f"agent: await {gate}\nagent: say unseen")
    first = harness.work()
    await_that(lambda: harness.job(job_id).get("run") is not None)
    harness.end(first)
    gate.touch()
    await_that(lambda: "done" in harness.status("claude")["state"]["state"])

    harness.drain()

    job = harness.job(job_id)
    assert (job["status"], job["result"], len(harness.typed())) == ("completed", "unseen", 1)


def test_a_worker_that_shuts_down_releases_the_job_and_leaves_the_session_working(harness: LiveHarness) -> None:
    harness.agent()
    gate = harness.folder / "gate"
    job_id = harness.register(f"agent: await {gate}\nagent: say at last")
    first = harness.work()
    await_that(lambda: harness.job(job_id).get("run") is not None)
    harness.end(first, signal.SIGTERM)
    assert harness.job(job_id)["status"] == "pending"
    gate.touch()

    harness.drain()

    job = harness.job(job_id)
    assert (job["status"], job["losses"], len(harness.typed())) == ("completed", 0, 1)


def test_a_killed_worker_between_typing_and_proof_types_no_second_time(harness: LiveHarness) -> None:
    harness.agent()
    gate = harness.folder / "gate"
    job_id = harness.register(f"agent: await {gate}\nagent: say once")
    first = harness.work()
    await_that(lambda: bool(harness.typed()))
    os.kill(first.pid, signal.SIGKILL)
    gate.touch()

    harness.drain()

    assert (harness.job(job_id)["status"], len(harness.typed())) == ("completed", 1)


def test_a_session_that_ends_during_a_job_is_a_failure_that_may_be_tried_again(harness: LiveHarness) -> None:
    harness.agent()
    job_id = harness.register("agent: die")
    worker = harness.work()

    job = harness.await_status(job_id, "waiting")

    harness.end(worker, signal.SIGTERM)
    assert (job["waiting_for"], job["retries"]) == ("retry", 1)
    assert job["reason"] == "the session claude ended before the job did"
    assert job["run"]["turn"]["ended_by"] == "process"


def test_a_restarted_session_gets_its_job_again_at_no_cost(harness: LiveHarness) -> None:
    harness.agent()
    gate = harness.folder / "gate"
    job_id = harness.register(f"agent: await {gate}\nagent: say again")
    harness.work()
    await_that(lambda: harness.job(job_id).get("run") is not None)

    assert harness.mam("agents", "restart", "claude").code == 0
    gate.touch()

    job = harness.await_status(job_id, "completed")
    assert (job["retries"], job["losses"], len(harness.typed())) == (0, 0, 2)
    assert job["run"]["session"]["generation_id"] == harness.record("claude")["generation_id"]


def test_only_one_worker_serves_a_session(harness: LiveHarness) -> None:
    harness.agent()
    first = harness.work()
    _await_lock(first, Path(harness.mam.env["MAM_AGENTS_DIR"]))

    harness.mam("worker", "--in", "claude", "--drain").failed(1, "Another worker already serves the session claude")


def _await_lock(worker: subprocess.Popen[bytes], agents: Path) -> None:
    assert worker.stderr is not None
    assert b"working for tmux:claude" in worker.stderr.readline()
    assert list(agents.glob("sessions/*/worker.lock"))


def test_a_session_that_stays_away_ends_a_worker_that_was_to_finish(harness: LiveHarness) -> None:
    harness.agent()
    job_id = harness.register("agent: die")
    again = harness.register("agent: say never")

    worker = harness.work("--drain")
    _, said = worker.communicate(timeout=60)

    assert worker.returncode == 1
    assert "No live record for claude" in said.decode().splitlines()[-1]
    assert harness.job(job_id)["reason"] == "the session claude ended before the job did"
    assert harness.job(again)["status"] == "pending"
