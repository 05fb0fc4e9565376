"""Whole jobs: a real worker, a real agent, a scripted model."""

from __future__ import annotations

import os
import time
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from mam.machine.processes import ProcessId
from tests.real_agents import model_server
from tests.real_agents.agent_setup import AgentSetup
from tests.real_agents.homes import HOMES
from tests.waiting import await_that
from tests.work.agent_facts import AGENT_FACTS
from tests.work.support import await_gone

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real_agents.model_server import ModelServer

LONGEST = 280.0
AGENTS = tuple(HOMES)


@pytest.fixture(params=AGENTS)
def setup(request: pytest.FixtureRequest, tmp_path: Path, model: ModelServer) -> AgentSetup:
    return AgentSetup(request.param, tmp_path, model)


@pytest.mark.few
def test_a_job_whose_artifact_the_agents_own_tool_wrote_is_completed(setup: AgentSetup) -> None:
    job = setup.done("model: write notes.txt it was me\nmodel: say I wrote it.", "--artifact", "notes.txt")

    assert job["status"] == "completed", job["reason"]
    assert job["checked"] is True
    assert (setup.here / "notes.txt").read_text() == "it was me\n"
    assert job["result"] == "I wrote it."
    about = job["run"]["agent"]
    assert about["session"]
    assert about["tokens"] == {"input": 200, "cached": 22, "output": 44}
    assert about["cost_usd"] == pytest.approx(2 * AGENT_FACTS[setup.agent].answer_cost)
    assert about.get("cost_from") == (None if AGENT_FACTS[setup.agent].prints_cost else "prices")
    assert about["permissions"] == "edit"
    assert about["passed"]


def test_progress_is_published_during_the_turn(setup: AgentSetup) -> None:
    job = setup.done("model: write notes.txt it was me")

    told = [line for line in setup.mam("logs", job["job_id"]).out.splitlines() if "progress" in line]
    assert told
    assert str(setup.here) not in "".join(told)


def test_a_usage_limit_makes_it_wait_and_then_finish(setup: AgentSetup) -> None:
    """Two jobs: one meets the limit, both wait, and after the reset both are done, at the cost of no retry."""
    if setup.agent == "claude-code":  # only an account's plan says when its limit ends
        del setup.mam.env["ANTHROPIC_API_KEY"]
        setup.mam.env["CLAUDE_CODE_OAUTH_TOKEN"] = "sk-ant-oat01-not-a-token"
    first, second = (setup.job(f"model: write {name} done", "--artifact", name) for name in ("one", "two"))
    resets_at = setup.model.limit(40)
    with setup.at_work():
        await_that(lambda: setup.record(first)["status"] == "waiting", "it does not wait")
        waiting = setup.record(first)
        assert waiting["waiting_for"] == "reset"
        assert setup.record(second)["status"] == "pending"
        assert f"agent {setup.agent}" in setup.mam("pause", "--list").out
        assert "tried first" in setup.mam("explain", second).out
        setup.wait_until_ended(first, second)

    assert time.time() >= resets_at()
    for job in map(setup.record, (first, second)):
        assert job["status"] == "completed", job["reason"]
        assert (job["retries"], job["losses"]) == (0, 0)
    assert setup.record(first)["attempt"] == 2
    assert setup.record(first)["run"]["agent"]["resumed"] == waiting["run"]["agent"]["session"]
    assert setup.record(second)["attempt"] == 1
    assert setup.mam("pause", "--list").out == ""


def test_a_resumed_conversation_counts_only_what_is_new(setup: AgentSetup) -> None:
    """The limit comes in the middle of a turn, so that the attempt before has taken tokens too."""
    if setup.agent == "claude-code":
        del setup.mam.env["ANTHROPIC_API_KEY"]
        setup.mam.env["CLAUDE_CODE_OAUTH_TOKEN"] = "sk-ant-oat01-not-a-token"
    job = setup.job("model: write notes.txt x\nmodel: say Done.", "--artifact", "notes.txt")
    setup.model.limit(15)
    limit = setup.model.trouble
    assert callable(limit)
    setup.model.trouble = lambda: limit() if len(setup.model.seen) > 1 else None
    with setup.at_work():
        await_that(lambda: setup.record(job)["status"] == "waiting", "it does not wait")
        before = len(setup.model.seen)
        setup.wait_until_ended(job)

    ended = setup.record(job)
    assert (ended["status"], ended["attempt"]) == ("completed", 2), ended["reason"]
    about, answers = ended["run"]["agent"], len(setup.model.seen) - before
    assert about["resumed"] == about["session"]
    assert about["tokens"] == {"input": 100 * answers, "cached": 11 * answers, "output": 22 * answers}
    assert about["cost_usd"] == pytest.approx(answers * AGENT_FACTS[setup.agent].answer_cost)


@pytest.mark.few
def test_without_waiting_a_usage_limit_is_an_error(setup: AgentSetup) -> None:
    setup.model.limit(3600)
    setup.mam.env["MAM_ON_LIMIT"] = "fail"

    job = setup.done("model: write notes.txt x")

    assert job["status"] == "error"
    assert job["reason"].startswith("usage_limit: ")
    assert setup.mam("pause", "--list").out == ""


def test_a_refused_tool_ends_in_permission_denied(setup: AgentSetup) -> None:
    """The model says that it is done, and the exit code is 0."""
    job = setup.done("model: write notes.txt x\nmodel: say Done.", "--permissions", "ask", "--no-ask")

    assert job["status"] == "error"
    assert job["reason"].startswith("permission_denied: ")
    assert not (setup.here / "notes.txt").exists()
    assert job["run"]["agent"]["permissions"] == "ask"


def test_by_default_nothing_outside_of_its_directory_may_be_written(setup: AgentSetup, tmp_path: Path) -> None:
    outside = "/var/mam-real-agents-outside"

    job = setup.done(f"model: write {outside} x", "--no-ask")

    assert job["status"] == "error"
    assert job["reason"].startswith("permission_denied: ")
    assert not os.path.exists(outside)


def test_with_all_rights_it_may_write_anywhere(setup: AgentSetup, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    setup.mam.env["IS_SANDBOX"] = "1"  # Claude Code does not believe root otherwise

    job = setup.done(f"model: write {outside} x", "--permissions", "full")

    assert job["status"] == "completed", job["reason"]
    assert outside.read_text() == "x\n"


@pytest.mark.few
def test_a_cancel_ends_the_tree(setup: AgentSetup) -> None:
    job = setup.job("model: run sleep 1000\nmodel: hang" if setup.agent == "codex" else "model: hang")
    with setup.at_work():
        if setup.agent == "codex":
            await_that(lambda: (setup.record(job)["run"] or {}).get("agent", {}).get("session") is not None, "no start")
        else:
            assert setup.model.hanging.acquire(timeout=120)
        running = setup.record(job)
        setup.mam("cancel", job)
        process = ProcessId.from_json(running["run"]["process"]["agent"])
        assert process is not None
        await_gone([process])
        await_that(lambda: not left_of(setup), f"left: {left_of(setup)}")

    assert setup.record(job)["status"] == "cancelled"


def left_of(setup: AgentSetup) -> list[str]:
    """Every process that has this office's home in its environment, but `mam` itself."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as environ, open(f"/proc/{pid}/cmdline", "rb") as command:
                words = command.read().replace(b"\0", b" ").decode(errors="replace")
                if f"HOME={setup.mam.home}\0".encode() in environ.read() and " mam" not in words:
                    found.append(words)
        except OSError:
            continue
    return found


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [("logged_out", "not_logged_in: "), ("unpaid", "billing: ")],
)
def test_an_agent_that_cannot_use_the_model_names_the_reason(setup: AgentSetup, trouble: str, reason: str) -> None:
    setup.model.trouble = getattr(model_server, trouble)()

    job = setup.done("model: write notes.txt x")

    assert job["status"] == "error"
    assert job["reason"].startswith(reason), job["reason"]
    assert job["attempt"] == 1


@pytest.mark.parametrize("broken", [{"nothing": "that a vendor says"}, {"choices": []}], ids=["nonsense", "nothing"])
def test_a_vendor_whose_answers_contain_nothing_is_overloaded(setup: AgentSetup, broken: dict[str, object]) -> None:
    """OpenCode asks again at once, without end, when an answer has no content."""
    job = setup.job("model: say Hello.")
    setup.model.broken = broken
    with setup.at_work():
        await_that(lambda: setup.record(job)["status"] not in ("pending", "running"), "it goes on", LONGEST)

    ended = setup.record(job)
    assert (ended["status"], ended["waiting_for"]) == ("waiting", "retry"), ended["reason"]
    assert ended["reason"].startswith("overloaded: ")
    assert len(setup.model.seen) <= 12


def test_codex_under_high_demand_is_tried_again_later(tmp_path: Path, model: ModelServer) -> None:
    """It prints a sentence of its own for every HTTP 500."""
    setup = AgentSetup("codex", tmp_path, model)
    job = setup.job("model: say Hello.")
    model.trouble = model_server.ErrorReply(500, {}, {"message": "boom", "type": "server_error"})
    with setup.at_work():
        await_that(lambda: setup.record(job)["status"] == "waiting", "it does not wait", LONGEST)
        assert setup.record(job)["reason"].startswith("overloaded: "), setup.record(job)["reason"]
        model.trouble = None
        setup.wait_until_ended(job)

    assert (setup.record(job)["status"], setup.record(job)["result"]) == ("completed", "Hello.")


def test_a_model_that_declines_is_no_success(setup: AgentSetup) -> None:
    job = setup.done("model: refuse I will not do that.")

    assert job["status"] == "error"
    assert job["reason"].startswith("declined: "), job["reason"]


def test_an_agent_that_cannot_do_it_reports_it_in_its_last_message(setup: AgentSetup) -> None:
    job = setup.done("model: say CANNOT BE DONE: there is no such course")

    assert (job["status"], job["reason"]) == ("error", "there is no such course")


DOOR_RULE = 'prefix_rule(pattern=["mam", ["publish", "heartbeat", "complete", "fail"]], decision="allow")'
"""What a user of Codex may allow, word for word as the manual says."""


def test_an_agent_reports_through_its_door(setup: AgentSetup) -> None:
    if setup.agent == "codex":  # whose sandbox has no sockets, but for what its user allows
        setup.shell_finds_mam()
        rules = setup.mam.home / ".codex" / "rules"
        rules.mkdir()
        (rules / "mam.rules").write_text(DOOR_RULE, "utf-8")

    job = setup.done('model: run mam complete --result "said by the agent"\nmodel: say Done.')

    assert job["status"] == "completed", job["reason"]
    assert job["result"] == "said by the agent"
    assert "keeps this command away" not in setup.mam("output", job["job_id"]).out


def test_in_codex_sandbox_the_last_message_counts_and_the_brief_states_why(tmp_path: Path, model: ModelServer) -> None:
    """Its brief states it, and mam tells it to an agent that tries."""
    setup = AgentSetup("codex", tmp_path, model)
    setup.shell_finds_mam()
    with TemporaryDirectory(dir="/var/tmp") as elsewhere:  # where the sandbox forbids writing
        setup.mam.env["MAM_STORE"] = f"{elsewhere}/jobs"
        other = setup.job("x")
        assert "do not call it" in setup.mam("brief", other).out
        setup.mam("cancel", other)

        job = setup.done("model: run mam complete --result tried || true\nmodel: say Done.")

        assert "a sandbox keeps this command away from the worker" in setup.mam("output", job["job_id"]).out
    assert (job["status"], job["result"]) == ("completed", "Done."), job["reason"]


def test_an_unanswerable_question_is_not_completed(setup: AgentSetup) -> None:
    """The tool is not offered; this model calls it all the same, and then stops."""
    setup.model.insists = True

    job = setup.done("model: ask Which colour?\nmodel: say I need to know the colour.", "--no-ask")

    assert job["status"] == "error"
    assert job["reason"].startswith("unanswered: "), job["reason"]
    assert setup.agent == "opencode" or "Which colour?" in job["reason"]


def test_an_agent_that_asked_and_decided_itself_is_judged_by_its_work(setup: AgentSetup) -> None:
    setup.model.insists = True

    prompt = "model: ask Which colour?\nmodel: write notes.txt red"

    job = setup.done(prompt, "--artifact", "notes.txt", "--no-ask")

    assert (job["status"], job["checked"]) == ("completed", True), job["reason"]
