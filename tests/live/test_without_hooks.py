"""Sessions whose program has no hooks, and what an agent says by itself."""

from __future__ import annotations

import os

import pytest

from tests.live.harness import LiveHarness
from tests.waiting import await_that

pytestmark = pytest.mark.external


def test_without_hooks_the_agents_report_ends_the_job(harness: LiveHarness) -> None:
    harness.agent("claude", "claude-code", "--no-hooks")
    prompt = "agent: write notes.txt x\nagent: run mam complete {job} --result mine"
    job_id = harness.register(prompt, "--artifact", "notes.txt")

    harness.drain()

    job = harness.job(job_id)
    assert (job["status"], job["result"], job["checked"]) == ("completed", "mine", True), harness.heard()
    assert (job["run"]["session"]["proof"], job["run"]["turn"]["ended_by"]) == ("screen", "protocol")


def test_where_hooks_are_missing_the_transcript_is_the_proof(harness: LiveHarness) -> None:
    projects = harness.mam.home / "claude" / "projects" / "here"
    projects.mkdir(parents=True)
    harness.mam.env["CLAUDE_CONFIG_DIR"] = str(harness.mam.home / "claude")
    command = [*harness.script("claude", "claude-code"), "--transcript", str(projects / "session.jsonl")]
    harness.mam("agents", "start", "claude", "--agent", "claude-code", "--no-hooks", "--", *command)
    await_that(lambda: "ready" in harness.heard())
    job_id = harness.register("agent: run mam complete {job}")

    harness.drain()

    job = harness.job(job_id)
    assert (job["status"], job["run"]["session"]["proof"]) == ("completed", "transcript")


def test_a_session_that_was_adopted_serves_jobs_too(harness: LiveHarness) -> None:
    harness.tmux("new-session", "-d", "-s", "mine", "-x", "200", "-y", "50", "-c", str(harness.mam.here),
               *harness.script("mine", "claude-code"), server="other")  # fmt: skip
    await_that(lambda: "ready" in harness.heard("mine"))
    socket = harness.tmux("display-message", "-p", "#{socket_path}", server="other")
    harness.mam("agents", "adopt", "mine", "--session", "mine", "--socket", socket, "--agent", "claude-code")
    job_id = harness.register("agent: run mam complete {job} --result adopted", name="mine")

    harness.drain(name="mine")

    job = harness.job(job_id)
    assert (job["status"], job["result"], job["run"]["session"]["proof"]) == ("completed", "adopted", "screen")


def test_reports_of_an_agent_reach_the_worker_of_its_session(harness: LiveHarness) -> None:
    harness.agent()
    elsewhere = harness.folder / "elsewhere"
    elsewhere.mkdir()
    said = f"cd {elsewhere} && mam publish {{job}} progress --detail half && mam fail {{job}} --reason 'no way'"
    job_id = harness.register(f"agent: run {said}")

    harness.drain()

    job = harness.job(job_id)
    assert (job["status"], job["reason"]) == ("error", "no way"), harness.heard()
    assert "half" in [event["detail"] for event in harness.events(job_id)]


def test_a_text_is_typed_between_two_jobs(harness: LiveHarness) -> None:
    harness.agent()
    jobs = [harness.register(f"agent: say {number}") for number in range(3)]

    harness.drain("--between", "/clear")

    assert [harness.job(job_id)["result"] for job_id in jobs] == ["0", "1", "2"]
    assert [line.split(" ")[0] for line in harness.typed()] == ["Read", "/clear", "Read", "/clear", "Read"]


def test_a_job_that_is_called_off_is_broken_off_in_the_session(harness: LiveHarness) -> None:
    harness.agent()
    job_id = harness.register(f"agent: await {harness.folder}/never")
    worker = harness.work()
    await_that(lambda: harness.job(job_id).get("run") is not None)

    assert harness.mam("cancel", job_id).code == 0

    # A terminal that echoes shows the key so.
    await_that(lambda: "^[" in harness.tmux("capture-pane", "-p", "-t", "=claude:"))
    assert harness.job(job_id)["status"] == "cancelled"
    harness.end(worker)


def test_a_turn_that_a_person_interrupted_is_not_done(harness: LiveHarness) -> None:
    harness.agent()
    job_id = harness.register("agent: stay")
    worker = harness.work("--drain")
    await_that(lambda: harness.job(job_id).get("run") is not None)
    harness.tmux("send-keys", "-t", "=claude:", "-l", "what have you done so far")
    harness.tmux("send-keys", "-t", "=claude:", "Enter")
    await_that(lambda: "another prompt" in harness.events(job_id)[-1]["detail"])

    assert harness.job(job_id)["status"] == "running"
    assert harness.mam("complete", job_id, "--result", "by hand").code == 0

    worker.communicate(timeout=60)
    assert (harness.job(job_id)["status"], harness.job(job_id)["result"]) == ("completed", "by hand")


def test_the_brief_is_readable_only_by_the_session_and_names_the_directory(harness: LiveHarness) -> None:
    harness.agent()
    gate = harness.folder / "gate"
    harness.register(f"agent: await {gate}")
    worker = harness.work("--drain")
    await_that(lambda: bool(harness.typed()))
    path = harness.typed()[0].split(" ")[1]
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert f'Work in the directory "{harness.mam.here}"' in text
    assert "mam complete " in text
    gate.touch()
    worker.communicate(timeout=60)
