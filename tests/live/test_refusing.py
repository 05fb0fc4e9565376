"""When a session cannot be typed into: the job waits where everybody sees why, and nothing is typed over anything."""

from __future__ import annotations

import signal

import pytest

from tests.live.harness import LiveHarness
from tests.waiting import await_that

pytestmark = pytest.mark.external


def test_a_session_that_asks_for_permission_is_not_typed_into(harness: LiveHarness) -> None:
    harness.agent()
    first = harness.register("agent: ask\nagent: say allowed")
    second = harness.register("agent: say next")
    worker = harness.work()
    await_that(lambda: harness.status("claude")["state"]["state"] == "needs permission")

    # The session knows first; the worker then tells it as an event of the job.
    await_that(lambda: harness.mam("explain", first, "--json").json["state"]["state"] == "needs permission")
    assert harness.job(first)["status"] == "running"
    why = harness.mam("explain", first, "--json").json
    assert (why["state"]["state"], why["state"]["source"]) == ("needs permission", "hook")
    assert "claude-code needs permission for Write" in " ".join(why["why"])
    assert harness.events(first)[-1]["event"] == "permission_required"
    assert harness.job(second)["status"] == "pending"

    harness.tmux("send-keys", "-t", "=claude:", "1", "Enter")

    assert harness.await_status(second, "completed")["result"] == "next"
    assert harness.job(first)["result"] == "allowed"
    assert "answer 1" in harness.heard()
    worker.send_signal(signal.SIGTERM)
    _, said = worker.communicate()
    assert b"claude waits for a person: claude-code needs permission for Write" in said


def test_a_question_of_another_turn_keeps_jobs_pending_and_explain_shows_it(harness: LiveHarness) -> None:
    harness.agent()
    brief = harness.folder / "mine.md"
    brief.write_text("agent: ask\nagent: say mine", "utf-8")
    harness.tmux("send-keys", "-t", "=claude:", "-l", f"Read {brief} and do it")
    harness.tmux("send-keys", "-t", "=claude:", "Enter")
    await_that(lambda: "Do you want" in harness.tmux("capture-pane", "-p", "-t", "=claude:"))
    job_id = harness.register("agent: say after")
    worker = harness.work()
    assert worker.stderr is not None
    await_that(lambda: "shows a question" in worker.stderr.readline().decode())  # type: ignore[union-attr]

    assert (harness.job(job_id)["status"], harness.job(job_id)["attempt"]) == ("pending", 0)
    why = " ".join(harness.mam("explain", job_id, "--json").json["why"])
    assert "claude needs permission (hook" in why

    harness.tmux("send-keys", "-t", "=claude:", "1", "Enter")
    assert harness.await_status(job_id, "completed")["result"] == "after"
    harness.end(worker, signal.SIGTERM)


def test_nothing_is_typed_while_a_person_types_or_the_pane_is_in_copy_mode(harness: LiveHarness) -> None:
    harness.agent()
    job_id = harness.register("agent: say later")
    harness.tmux("copy-mode", "-t", "=claude:")
    worker = harness.work()
    assert worker.stderr is not None
    await_that(lambda: "copy-mode" in worker.stderr.readline().decode())  # type: ignore[union-attr]
    assert harness.job(job_id)["status"] == "pending"
    harness.tmux("send-keys", "-t", "=claude:", "-X", "cancel")
    assert harness.await_status(job_id, "completed")["result"] == "later"

    with harness.person("claude") as press:
        press(b"x")
        again = harness.register("agent: say not over you")
        await_that(lambda: "A person typed" in worker.stderr.readline().decode())  # type: ignore[union-attr]
        assert harness.job(again)["status"] in ("pending", "waiting")
        assert len(harness.typed()) == 1
    harness.end(worker, signal.SIGTERM)


def test_a_worker_without_a_session_fails_at_once(harness: LiveHarness) -> None:
    harness.mam("worker", "--in", "claude").failed(1, "No live record for claude")
    harness.mam("worker", "--in", "claude", "--job", "x").failed(2, "one job at a time")
    harness.mam("worker", "--in", "claude", "--concurrency", "2").failed(2, "one job at a time")
    harness.mam("worker", "-s", "x", "--between", "/clear").failed(2, "--between needs --in")
