"""The drivers as a worker starts them, with programs that speak the protocols of the real agents."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

from mam import questions
from mam.config.settings import Config
from mam.jobs.question_acts import Answer
from mam.stores.memory import MemoryStore
from mam.work.drivers.json_lines import JsonLinesProgram, ProgramEnded, RpcError
from tests.waiting import await_that
from tests.work.asking_programs import PROGRAMS
from tests.work.worker_harness import Harness

if TYPE_CHECKING:
    from pathlib import Path

    from mam.jobs.record import Job


@pytest.fixture(params=PROGRAMS)
def agent(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Its program is on PATH."""
    name, script = PROGRAMS[request.param]
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / name).write_text(f"#!{sys.executable} -ISu\n{script}", encoding="utf-8")
    (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return str(request.param)


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(MemoryStore(), tmp_path)


def answered(harness: Harness, agent: str, answer: str, reason: str | None = None) -> Job:
    """The job after a person has answered its question."""
    job_id = harness.job("do it", agent=agent, may_ask=True)
    with harness.at_work(labels=(agent,)):
        await_that(lambda: harness.get(job_id).questions or harness.get(job_id).status.ended, "no question")
        (found,) = questions.open_now(harness.registry)
        question = found.question
        assert question.input is not None
        assert question.input["command"] == "npm test"
        given = Answer(
            number=question.number, attempt=1, digest=question.digest, answer=answer, by="me@here", reason=reason
        )
        questions.answer(harness.registry, job_id, given)
        return harness.until(job_id)


def said_to(harness: Harness) -> Any:
    """What the program got."""
    return json.loads((harness.place / "said").read_text())


ALLOWED = {
    "claude-code": {"behavior": "allow", "updatedInput": {"command": "npm test"}},
    "codex": {"decision": "accept"},
    "opencode": {"reply": "once"},
}


def test_an_allowed_command_is_allowed_once(agent: str, harness: Harness) -> None:
    job = answered(harness, agent, "allow")

    assert job.status == "completed", job.reason
    told = said_to(harness)
    found = {"claude-code": lambda: told["response"], "codex": lambda: told[0]["result"], "opencode": lambda: told[1]}
    assert found[agent]() == ALLOWED[agent]


def test_always_is_once_for_the_agent(agent: str, harness: Harness) -> None:
    """mam remembers it; the agent's settings stay as they are."""
    assert answered(harness, agent, "always").status == "completed"

    told = json.dumps(said_to(harness))
    assert "always" not in told
    assert "Session" not in told


def test_a_denial_tells_the_reason_and_the_checks_decide(agent: str, harness: Harness) -> None:
    job = answered(harness, agent, "deny", "use make")

    assert job.status == "completed", job.reason
    assert "A person refused this: use make" in json.dumps(said_to(harness))
    assert job.run is not None
    assert job.run["agent"]["denials"] == 1
    assert "denied" not in job.run["agent"]


@pytest.mark.parametrize("agent", ["codex"], indirect=True)
def test_the_reason_for_codex_comes_before_the_refusal(harness: Harness, agent: str) -> None:
    """It takes none with the refusal."""
    answered(harness, agent, "deny", "use make")

    steered, refused = said_to(harness)
    assert steered["method"] == "turn/steer"
    assert steered["params"]["expectedTurnId"] == "u1"
    assert refused["result"] == {"decision": "decline"}


def test_a_deadline_ends_the_turn_and_the_job(agent: str, tmp_path: Path) -> None:
    harness = Harness(MemoryStore(), tmp_path, Config(questions={"deadline_seconds": 1.0}))

    job = harness.ended("do it", agent=agent, may_ask=True)

    assert job.status == "error"
    assert (job.reason or "").startswith("permission_denied: "), job.reason
    told = json.dumps(said_to(harness))
    assert {"claude-code": '"interrupt": true', "codex": '"cancel"', "opencode": '{"reply": "reject"}'}[agent] in told


def test_the_brief_is_on_no_command_line_and_the_record_says_how_it_asks(agent: str, harness: Harness) -> None:
    job = answered(harness, agent, "allow")

    assert job.run is not None
    assert job.run["agent"]["asks"] in ("stdio", "app-server", "serve")
    assert "do it" not in json.dumps(job.run)


def test_a_cancel_withdraws_the_question_and_ends_the_tree(agent: str, harness: Harness) -> None:
    job_id = harness.job("do it", agent=agent, may_ask=True)
    with harness.at_work(labels=(agent,)):
        await_that(lambda: harness.get(job_id).questions, "no question")
        harness.registry.cancel(job_id)
        job = harness.until(job_id)
        await_that(lambda: not running_below(harness.place), f"left: {running_below(harness.place)}")

    assert job.status == "cancelled"
    assert [one["state"] for one in job.questions] == ["withdrawn"]


def running_below(place: Path) -> list[str]:
    """The processes that work in this directory."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/cwd") == str(place):
                found.append(pid)
        except OSError:
            continue
    return found


@pytest.mark.parametrize("agent", ["opencode"], indirect=True)
def test_a_reply_to_opencode_that_is_not_mams_own_ends_the_turn(agent: str, harness: Harness) -> None:
    """The agent's commands could find the password of the server."""
    (harness.place / "cheats").touch()

    job = harness.ended("do it", agent=agent, may_ask=True, max_retries=0)

    assert job.status == "error"
    assert "something other than mam answered" in (job.reason or "")
    assert (harness.place / "aborted").exists()


# -- a program that speaks JSON in lines -----------------------------------------------------------------------------


def program(script: str) -> JsonLinesProgram:
    return JsonLinesProgram([sys.executable, "-ISuc", script])


def test_a_result_is_found_among_other_messages_which_stay() -> None:
    script = """
import json, sys
number = json.loads(sys.stdin.readline())["id"]
print("noise"); print("[1]"); print('{"method": "first"}')
print(json.dumps({"id": number, "result": {"ok": 1}})); print('{"method": "second"}')
"""
    speaker = program(script)
    assert speaker.call("x", {}) == {"ok": 1}
    assert [message["method"] for message in speaker.messages()] == ["first", "second"]
    assert speaker.close() == 0


def test_an_error_and_an_end_are_reported() -> None:
    failing = program(
        "import json, sys; n = json.loads(sys.stdin.readline())['id'];"
        "print(json.dumps({'id': n, 'error': {'code': -1, 'message': 'no'}}))"
    )
    with pytest.raises(RpcError, match=r"no \(code -1\)"):
        failing.call("x", {})
    failing.close()
    silent = program("import sys; sys.stdin.readline(); sys.exit(3)")
    with pytest.raises(ProgramEnded):
        silent.call("x", {})
    silent.reply(1, {})  # no process reads it
    assert silent.close() == 3
