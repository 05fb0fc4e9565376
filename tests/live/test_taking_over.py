"""Workers that are killed, sessions that end or restart: the job is never typed twice, lost, or completed wrongly."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.live.stage import Stage
from tests.waiting import await_that

pytestmark = pytest.mark.external


def test_a_session_still_at_its_job_is_watched_by_the_next_worker(stage: Stage) -> None:
    stage.agent()
    gate = stage.folder / "gate"
    job_id = stage.register(f"agent: await {gate}\nagent: write notes.txt made", "--artifact", "notes.txt")
    first = stage.work()
    await_that(lambda: stage.job(job_id).get("run") is not None)
    stage.end(first)
    second = stage.work("--drain")
    await_that(lambda: stage.job(job_id)["attempt"] == 2 and stage.job(job_id)["status"] == "running")
    gate.touch()

    second.communicate(timeout=60)

    job = stage.job(job_id)
    assert (job["status"], job["attempt"], job["losses"], job["checked"]) == ("completed", 2, 1, True)
    assert len(stage.typed()) == 1


def test_a_turn_that_ended_while_no_worker_was_there_is_judged_by_the_next(stage: Stage) -> None:
    stage.agent()
    gate = stage.folder / "gate"
    job_id = stage.register(f"agent: await {gate}\nagent: say unseen")
    first = stage.work()
    await_that(lambda: stage.job(job_id).get("run") is not None)
    stage.end(first)
    gate.touch()
    await_that(lambda: "done" in stage.status("claude")["state"]["state"])

    stage.drain()

    job = stage.job(job_id)
    assert (job["status"], job["result"], len(stage.typed())) == ("completed", "unseen", 1)


def test_a_worker_that_shuts_down_releases_the_job_and_leaves_the_session_working(stage: Stage) -> None:
    stage.agent()
    gate = stage.folder / "gate"
    job_id = stage.register(f"agent: await {gate}\nagent: say at last")
    first = stage.work()
    await_that(lambda: stage.job(job_id).get("run") is not None)
    stage.end(first, signal.SIGTERM)
    assert stage.job(job_id)["status"] == "pending"
    gate.touch()

    stage.drain()

    job = stage.job(job_id)
    assert (job["status"], job["losses"], len(stage.typed())) == ("completed", 0, 1)


def test_a_killed_worker_between_typing_and_proof_types_no_second_time(stage: Stage) -> None:
    stage.agent()
    gate = stage.folder / "gate"
    job_id = stage.register(f"agent: await {gate}\nagent: say once")
    first = stage.work()
    await_that(lambda: bool(stage.typed()))
    os.kill(first.pid, signal.SIGKILL)
    gate.touch()

    stage.drain()

    assert (stage.job(job_id)["status"], len(stage.typed())) == ("completed", 1)


def test_a_session_that_ends_during_a_job_is_a_failure_that_may_be_tried_again(stage: Stage) -> None:
    stage.agent()
    job_id = stage.register("agent: die")
    worker = stage.work()

    job = stage.await_status(job_id, "waiting")

    stage.end(worker, signal.SIGTERM)
    assert (job["waiting_for"], job["retries"]) == ("retry", 1)
    assert job["reason"] == "the session claude ended before the job did"
    assert job["run"]["turn"]["ended_by"] == "process"


def test_a_restarted_session_gets_its_job_again_at_no_cost(stage: Stage) -> None:
    stage.agent()
    gate = stage.folder / "gate"
    job_id = stage.register(f"agent: await {gate}\nagent: say again")
    stage.work()
    await_that(lambda: stage.job(job_id).get("run") is not None)

    assert stage.mam("agents", "restart", "claude").code == 0
    gate.touch()

    job = stage.await_status(job_id, "completed")
    assert (job["retries"], job["losses"], len(stage.typed())) == (0, 0, 2)
    assert job["run"]["session"]["generation_id"] == stage.record("claude")["generation_id"]


def test_only_one_worker_serves_a_session(stage: Stage) -> None:
    stage.agent()
    first = stage.work()
    _await_lock(first, Path(stage.mam.env["MAM_AGENTS_DIR"]))

    stage.mam("worker", "--in", "claude", "--drain").failed(1, "Another worker already serves the session claude")


def _await_lock(worker: subprocess.Popen[bytes], agents: Path) -> None:
    assert worker.stderr is not None
    assert b"working for tmux:claude" in worker.stderr.readline()
    assert list(agents.glob("sessions/*/worker.lock"))


def test_a_session_that_stays_away_ends_a_worker_that_was_to_finish(stage: Stage) -> None:
    stage.agent()
    job_id = stage.register("agent: die")
    again = stage.register("agent: say never")

    worker = stage.work("--drain")
    _, said = worker.communicate(timeout=60)

    assert worker.returncode == 1
    assert "No live record for claude" in said.decode().splitlines()[-1]
    assert stage.job(job_id)["reason"] == "the session claude ended before the job did"
    assert stage.job(again)["status"] == "pending"
