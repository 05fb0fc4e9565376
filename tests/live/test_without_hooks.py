"""Sessions whose program has no hooks, and what an agent says by itself."""

from __future__ import annotations

import os

import pytest

from tests.live.stage import Stage
from tests.waiting import await_that

pytestmark = pytest.mark.external


def test_without_hooks_the_agents_report_ends_the_job(stage: Stage) -> None:
    stage.agent("claude", "claude-code", "--no-hooks")
    prompt = "agent: write notes.txt x\nagent: run mam complete {job} --result mine"
    job_id = stage.register(prompt, "--artifact", "notes.txt")

    stage.drain()

    job = stage.job(job_id)
    assert (job["status"], job["result"], job["checked"]) == ("completed", "mine", True), stage.heard()
    assert (job["run"]["session"]["proof"], job["run"]["turn"]["ended_by"]) == ("screen", "protocol")


def test_where_hooks_are_missing_the_transcript_is_the_proof(stage: Stage) -> None:
    projects = stage.mam.home / "claude" / "projects" / "here"
    projects.mkdir(parents=True)
    stage.mam.env["CLAUDE_CONFIG_DIR"] = str(stage.mam.home / "claude")
    command = [*stage.script("claude", "claude-code"), "--transcript", str(projects / "session.jsonl")]
    stage.mam("agents", "start", "claude", "--agent", "claude-code", "--no-hooks", "--", *command)
    await_that(lambda: "ready" in stage.heard())
    job_id = stage.register("agent: run mam complete {job}")

    stage.drain()

    job = stage.job(job_id)
    assert (job["status"], job["run"]["session"]["proof"]) == ("completed", "transcript")


def test_a_session_that_was_adopted_serves_jobs_too(stage: Stage) -> None:
    stage.tmux("new-session", "-d", "-s", "mine", "-x", "200", "-y", "50", "-c", str(stage.mam.here),
               *stage.script("mine", "claude-code"), server="other")  # fmt: skip
    await_that(lambda: "ready" in stage.heard("mine"))
    socket = stage.tmux("display-message", "-p", "#{socket_path}", server="other")
    stage.mam("agents", "adopt", "mine", "--session", "mine", "--socket", socket, "--agent", "claude-code")
    job_id = stage.register("agent: run mam complete {job} --result adopted", name="mine")

    stage.drain(name="mine")

    job = stage.job(job_id)
    assert (job["status"], job["result"], job["run"]["session"]["proof"]) == ("completed", "adopted", "screen")


def test_reports_of_an_agent_reach_the_worker_of_its_session(stage: Stage) -> None:
    stage.agent()
    elsewhere = stage.folder / "elsewhere"
    elsewhere.mkdir()
    said = f"cd {elsewhere} && mam publish {{job}} progress --detail half && mam fail {{job}} --reason 'no way'"
    job_id = stage.register(f"agent: run {said}")

    stage.drain()

    job = stage.job(job_id)
    assert (job["status"], job["reason"]) == ("error", "no way"), stage.heard()
    assert "half" in [event["detail"] for event in stage.events(job_id)]


def test_a_text_between_two_jobs(stage: Stage) -> None:
    stage.agent()
    jobs = [stage.register(f"agent: say {number}") for number in range(3)]

    stage.drain("--between", "/clear")

    assert [stage.job(job_id)["result"] for job_id in jobs] == ["0", "1", "2"]
    assert [line.split(" ")[0] for line in stage.typed()] == ["Read", "/clear", "Read", "/clear", "Read"]


def test_a_job_that_is_called_off_is_broken_off_in_the_session(stage: Stage) -> None:
    stage.agent()
    job_id = stage.register(f"agent: await {stage.folder}/never")
    worker = stage.work()
    await_that(lambda: stage.job(job_id).get("run") is not None)

    assert stage.mam("cancel", job_id).code == 0

    # A terminal that echoes shows the key so.
    await_that(lambda: "^[" in stage.tmux("capture-pane", "-p", "-t", "=claude:"))
    assert stage.job(job_id)["status"] == "cancelled"
    stage.end(worker)


def test_a_turn_that_a_person_interrupted_is_not_done(stage: Stage) -> None:
    stage.agent()
    job_id = stage.register("agent: stay")
    worker = stage.work("--drain")
    await_that(lambda: stage.job(job_id).get("run") is not None)
    stage.tmux("send-keys", "-t", "=claude:", "-l", "what have you done so far")
    stage.tmux("send-keys", "-t", "=claude:", "Enter")
    await_that(lambda: "another prompt" in stage.events(job_id)[-1]["detail"])

    assert stage.job(job_id)["status"] == "running"
    assert stage.mam("complete", job_id, "--result", "by hand").code == 0

    worker.communicate(timeout=60)
    assert (stage.job(job_id)["status"], stage.job(job_id)["result"]) == ("completed", "by hand")


def test_the_brief_is_readable_only_by_the_session_and_names_the_directory(stage: Stage) -> None:
    stage.agent()
    gate = stage.folder / "gate"
    stage.register(f"agent: await {gate}")
    worker = stage.work("--drain")
    await_that(lambda: bool(stage.typed()))
    path = stage.typed()[0].split(" ")[1]
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert f'Work in the directory "{stage.mam.here}"' in text
    assert "mam complete " in text
    gate.touch()
    worker.communicate(timeout=60)
