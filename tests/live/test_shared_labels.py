"""Several sessions on one label: what one cannot take, because it works or waits for a person, the others do."""

from __future__ import annotations

import os
import signal

import pytest

from tests.live.harness import LiveHarness
from tests.waiting import await_that

pytestmark = pytest.mark.external


def register(harness: LiveHarness, prompt: str, *words: str, label: str = "team") -> str:
    return harness.mam("register", prompt, "--agent", "claude-code", "-s", label, *words).line


def test_while_one_session_asks_the_other_takes_the_jobs_and_the_log_states_who_waits(harness: LiveHarness) -> None:
    harness.agent("one")
    harness.agent("two")
    first = harness.work("-s", "team", name="one")
    asking = register(harness, "agent: ask\nagent: say allowed")
    await_that(lambda: harness.status("one")["state"]["state"] == "needs permission")
    own = harness.register("agent: say only mine", name="one")
    second = harness.work("-s", "team", "--drain", name="two")

    others = [register(harness, f"agent: say {number}") for number in range(4)]

    for number, job_id in enumerate(others):
        job = harness.await_status(job_id, "completed")
        assert (job["result"], job["run"]["session"]["name"]) == (str(number), "two")
    assert harness.job(asking)["status"] == "running"
    assert harness.job(own)["status"] == "pending"
    harness.tmux("send-keys", "-t", "=one:", "1", "Enter")
    assert harness.await_status(own, "completed")["result"] == "only mine"
    assert harness.job(asking)["result"] == "allowed"
    second.communicate(timeout=60)
    first.send_signal(signal.SIGTERM)
    said = first.communicate(timeout=60)[1].decode()
    assert "one waits for a person: claude-code needs permission for Write" in said


def test_the_log_counts_the_jobs_that_wait_and_names_the_workers_that_take_them(harness: LiveHarness) -> None:
    harness.agent("one")
    other = harness.mam.start("worker", "-s", "team", "--agent", "shell")
    try:
        await_that(lambda: harness.mam("workers").out, "the other worker is not in the list")
        name = harness.mam("workers").out.split("\t")[0]
        os.kill(other.pid, signal.SIGSTOP)  # it is there and takes nothing
        asking = harness.register("agent: ask", name="one")
        worker = harness.work("-s", "team", name="one")
        await_that(lambda: harness.status("one")["state"]["state"] == "needs permission")
        assert worker.stderr is not None
        alone = harness.register("agent: say behind it", name="one")
        for number in range(2):
            register(harness, f"agent: say {number}")

        told = ""
        while f"2 pending jobs of team can go to {name}" not in told:
            told = worker.stderr.readline().decode()
            assert told, "the worker ended"

        assert f"{asking[:8]} attempt 1: meanwhile 1 pending job of tmux:one waits for it; " in told
        assert harness.job(alone)["status"] == "pending"
    finally:
        other.kill()
        other.communicate()


def test_labels_take_turns_and_another_agents_job_is_not_typed(harness: LiveHarness) -> None:
    harness.agent("one")
    wrong = harness.mam("register", "echo x", "--agent", "shell", "-s", "team").line
    mine = [harness.register("agent: say mine", name="one") for _ in range(2)]
    shared = register(harness, "agent: say shared")

    harness.drain("-s", "team", "-s", "tmux:one", name="one")

    assert [harness.job(job_id)["status"] for job_id in (*mine, shared)] == ["completed"] * 3
    assert harness.job(wrong)["reason"] == (
        "The agent shell cannot be started: the live session one, which claimed it, is claude-code."
    )
    assert len(harness.typed("one")) == 3


def test_a_shared_job_is_watched_by_the_next_worker_also_without_its_label(harness: LiveHarness) -> None:
    harness.agent("one")
    gate = harness.folder / "gate"
    job_id = register(harness, f"agent: await {gate}\nagent: say done")
    first = harness.work("-s", "team", name="one")
    await_that(lambda: (harness.job(job_id)["run"] or {}).get("session", {}).get("proof"))
    harness.end(first)
    second = harness.work("--drain", name="one")
    await_that(lambda: harness.job(job_id)["attempt"] == 2)
    gate.touch()
    second.communicate(timeout=60)

    assert harness.job(job_id)["result"] == "done"
    assert len(harness.typed("one")) == 1
