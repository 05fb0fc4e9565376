"""The real agents ask a person: a real worker, a scripted model, and answers from another process."""

from __future__ import annotations

import os
import pty
from typing import TYPE_CHECKING, Any

import pytest

from tests.real_agents.agent_setup import AgentSetup
from tests.real_agents.homes import HOMES
from tests.waiting import await_that

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real_agents.model_server import ModelServer

LONGEST = 120.0
WAYS = {"claude-code": "stdio", "codex": "app-server", "opencode": "serve"}
"""Through what each agent asks, as its record says."""
ASKING = tuple(name for name in HOMES if name in WAYS)
WRITE = "model: write notes.txt it was me\nmodel: say I wrote it."


@pytest.fixture(params=ASKING)
def setup(request: pytest.FixtureRequest, tmp_path: Path, model: ModelServer) -> AgentSetup:
    return AgentSetup(request.param, tmp_path, model)


def question_of(setup: AgentSetup, job: str, attempt: int = 1) -> dict[str, Any]:
    """The open question of this attempt, once there is one."""
    found: list[dict[str, Any]] = []

    def look() -> bool:
        every = setup.mam("questions", "--json").json
        found[:] = [one for one in every if one["job_id"] == job and one["attempt"] == attempt]
        record = setup.record(job)
        assert record["status"] != "error", record["reason"]
        return len(found) == 1

    await_that(look, "no question", LONGEST)
    return found[0]


def allow_all(setup: AgentSetup, job: str) -> None:
    def is_over() -> bool:
        for one in setup.mam("questions", "--json").json:
            setup.mam("answer", one["id"], "allow")
        return bool(setup.record(job)["ended_at"])

    await_that(is_over, "it does not end", LONGEST)


@pytest.mark.few
def test_an_allowed_tool_runs_and_the_job_is_completed(setup: AgentSetup) -> None:
    job = setup.job(WRITE, "--permissions", "ask", "--artifact", "notes.txt")
    with setup.at_work():
        asked = question_of(setup, job)
        assert asked["kind"] == "permission"
        assert "notes.txt" in str(asked["input"])
        assert "it was me" in str(asked["input"])
        assert not (setup.here / "notes.txt").exists()
        assert setup.mam("answer", asked["id"], "allow").code == 0
        setup.wait_until_ended(job)

    ended = setup.record(job)
    print(setup.mam("output", job).out[-3000:])
    assert (ended["status"], ended["result"]) == ("completed", "I wrote it."), ended["reason"]
    assert (setup.here / "notes.txt").read_text() == "it was me\n"
    assert ended["run"]["agent"]["asks"] == WAYS[setup.agent]
    assert ended["run"]["agent"]["tokens"] == {"input": 200, "cached": 22, "output": 44}
    assert "denials" not in ended["run"]["agent"]


def test_the_model_follows_the_reason_of_a_denial(setup: AgentSetup) -> None:
    """It takes another way, which is allowed, and the job is completed."""
    job = setup.job(WRITE, "--permissions", "ask", "--artifact", "other.txt")
    with setup.at_work():
        first = question_of(setup, job)
        instead = "use another name.\nmodel: write other.txt instead\nmodel: say I took another name."
        assert setup.mam("answer", first["id"], "deny", "--reason", instead).code == 0
        second = {**first}
        await_that(lambda: setup.record(job)["questions"][-1]["number"] == 2, "no second question", LONGEST)
        second = question_of(setup, job)
        assert "other.txt" in str(second["input"])
        assert setup.mam("answer", second["id"], "allow").code == 0
        setup.wait_until_ended(job)

    ended = setup.record(job)
    print(setup.mam("output", job).out[-3000:])
    assert (ended["status"], ended["result"]) == ("completed", "I took another name."), ended["reason"]
    assert not (setup.here / "notes.txt").exists()
    assert (setup.here / "other.txt").read_text() == "instead\n"
    assert ended["run"]["agent"]["denials"] == 1


def test_a_question_with_choices_is_answered(setup: AgentSetup) -> None:
    job = setup.job("model: ask Which colour?\nmodel: say So it is.")
    with setup.at_work():
        asked = question_of(setup, job)
        assert (asked["kind"], asked["text"], asked["choices"]) == ("question", "Which colour?", ["Yes", "No"])
        assert setup.mam("answer", asked["id"], "No").code == 0
        setup.wait_until_ended(job)

    ended = setup.record(job)
    print(setup.mam("output", job).out[-3000:])
    assert (ended["status"], ended["result"]) == ("completed", "So it is."), ended["reason"]
    told = [heard.text for heard in setup.model.seen[-1].heard if heard.is_result]
    assert "No" in told[-1]


def test_a_deadline_that_passes_is_permission_denied(setup: AgentSetup) -> None:
    assert setup.mam("config", "set", "questions.deadline_seconds", "2").code == 0

    job = setup.done(WRITE, "--permissions", "ask")

    assert job["status"] == "error"
    assert job["reason"].startswith("permission_denied: ")
    assert [one["state"] for one in job["questions"]] == ["expired"]
    assert not (setup.here / "notes.txt").exists()


def test_after_a_killed_worker_it_is_asked_again_and_the_old_answer_is_rejected(setup: AgentSetup) -> None:
    """The conversation goes on. Some agents tell the model that the step was aborted, so there are two of them."""
    job = setup.job(f"{WRITE.partition(chr(10))[0]}\n{WRITE}", "--permissions", "ask", "--artifact", "notes.txt")
    worker = setup.mam.start("worker", "--agent-session", setup.agent, "--lease", "4")
    first = question_of(setup, job)
    worker.kill()
    worker.communicate()

    with setup.at_work("--lease", "15"):
        second = question_of(setup, job, attempt=2)
        assert second["id"] != first["id"]
        states = {one["number"]: one.get("state", "open") for one in setup.record(job)["questions"]}
        assert states == {1: "withdrawn", 2: "open"}
        assert setup.mam("answer", first["id"], "allow").code == 4
        assert not (setup.here / "notes.txt").exists()
        allow_all(setup, job)

    ended = setup.record(job)
    print(setup.mam("output", job).out[-3000:])
    assert (ended["status"], ended["attempt"]) == ("completed", 2), ended["reason"]
    assert (setup.here / "notes.txt").read_text() == "it was me\n"


def test_a_person_at_another_terminal_sees_the_whole_question_and_answers(setup: AgentSetup) -> None:
    job = setup.job(WRITE, "--permissions", "ask", "--artifact", "notes.txt")
    with setup.at_work():
        asked = question_of(setup, job)
        shown = _answered_at_terminal(setup, asked["id"], b"a\n")
        setup.wait_until_ended(job)

    shown = "".join(line.strip().removeprefix("↳").strip() for line in shown.splitlines())
    assert "notes.txt" in shown, "long lines are folded, not cut"
    assert "it was me" in shown
    assert setup.record(job)["status"] == "completed"


def test_a_job_that_may_not_ask_is_refused_as_before(setup: AgentSetup) -> None:
    job = setup.done(WRITE, "--permissions", "ask", "--no-ask")

    assert job["status"] == "error"
    assert job["reason"].startswith("permission_denied: ")
    assert job["questions"] == []
    assert "asks" not in job["run"]["agent"]


def _answered_at_terminal(setup: AgentSetup, question: str, typed: bytes) -> str:
    """What `mam answer` shows at a terminal of its own, in which the test types."""
    import subprocess
    import sys

    from tests.cli.command import _read_all

    master, slave = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "mam", "answer", question], stdin=slave, stdout=slave, stderr=slave,
        cwd=setup.here, env=setup.mam.env,
    ) as process:  # fmt: skip
        os.close(slave)
        os.write(master, typed)
        shown = _read_all(master)
        assert process.wait(LONGEST) == 0, shown
    os.close(master)
    return shown.decode()
