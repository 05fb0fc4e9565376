"""When a session cannot be typed into: the job waits where everybody sees why, and nothing is typed over anything."""

from __future__ import annotations

import signal

import pytest

from tests.live.stage import Stage
from tests.waiting import await_that

pytestmark = pytest.mark.external


def test_a_session_that_asks_for_permission_is_not_typed_into(stage: Stage) -> None:
    stage.agent()
    first = stage.register("agent: ask\nagent: say allowed")
    second = stage.register("agent: say next")
    worker = stage.work()
    await_that(lambda: stage.status("claude")["state"]["state"] == "needs permission")

    # The session knows first; the worker then tells it as an event of the job.
    await_that(lambda: stage.mam("explain", first, "--json").json["state"]["state"] == "needs permission")
    assert stage.job(first)["status"] == "running"
    why = stage.mam("explain", first, "--json").json
    assert (why["state"]["state"], why["state"]["source"]) == ("needs permission", "hook")
    assert "claude-code needs permission for Write" in " ".join(why["why"])
    assert stage.events(first)[-1]["event"] == "permission_required"
    assert stage.job(second)["status"] == "pending"

    stage.tmux("send-keys", "-t", "=claude:", "1", "Enter")

    assert stage.await_status(second, "completed")["result"] == "next"
    assert stage.job(first)["result"] == "allowed"
    assert "answer 1" in stage.heard()
    worker.send_signal(signal.SIGTERM)
    _, said = worker.communicate()
    assert b"claude waits for a person: claude-code needs permission for Write" in said


def test_a_question_of_another_turn_keeps_jobs_pending_and_explain_shows_it(stage: Stage) -> None:
    stage.agent()
    brief = stage.folder / "mine.md"
    brief.write_text("agent: ask\nagent: say mine", "utf-8")
    stage.tmux("send-keys", "-t", "=claude:", "-l", f"Read {brief} and do it")
    stage.tmux("send-keys", "-t", "=claude:", "Enter")
    await_that(lambda: "Do you want" in stage.tmux("capture-pane", "-p", "-t", "=claude:"))
    job_id = stage.register("agent: say after")
    worker = stage.work()
    assert worker.stderr is not None
    await_that(lambda: "shows a question" in worker.stderr.readline().decode())  # type: ignore[union-attr]

    assert (stage.job(job_id)["status"], stage.job(job_id)["attempt"]) == ("pending", 0)
    why = " ".join(stage.mam("explain", job_id, "--json").json["why"])
    assert "claude needs permission (hook" in why

    stage.tmux("send-keys", "-t", "=claude:", "1", "Enter")
    assert stage.await_status(job_id, "completed")["result"] == "after"
    stage.end(worker, signal.SIGTERM)


def test_nothing_is_typed_while_a_person_types_or_the_pane_is_in_copy_mode(stage: Stage) -> None:
    stage.agent()
    job_id = stage.register("agent: say later")
    stage.tmux("copy-mode", "-t", "=claude:")
    worker = stage.work()
    assert worker.stderr is not None
    await_that(lambda: "copy-mode" in worker.stderr.readline().decode())  # type: ignore[union-attr]
    assert stage.job(job_id)["status"] == "pending"
    stage.tmux("send-keys", "-t", "=claude:", "-X", "cancel")
    assert stage.await_status(job_id, "completed")["result"] == "later"

    with stage.person("claude") as press:
        press(b"x")
        again = stage.register("agent: say not over you")
        await_that(lambda: "A person typed" in worker.stderr.readline().decode())  # type: ignore[union-attr]
        assert stage.job(again)["status"] in ("pending", "waiting")
        assert len(stage.typed()) == 1
    stage.end(worker, signal.SIGTERM)


def test_a_worker_without_a_session_fails_at_once(stage: Stage) -> None:
    stage.mam("worker", "--in", "claude").failed(1, "No live record for claude")
    stage.mam("worker", "--in", "claude", "--job", "x").failed(2, "one job at a time")
    stage.mam("worker", "--in", "claude", "--concurrency", "2").failed(2, "one job at a time")
    stage.mam("worker", "-s", "x", "--between", "/clear").failed(2, "--between needs --in")
