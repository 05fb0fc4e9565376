"""The real programs in tmux when they have to wait: for a person, for a reset, or without a hook that tells."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.real_agents.live import LONGEST, TOOLS, finish
from tests.waiting import await_that

if TYPE_CHECKING:
    from tests.real_agents.live import LiveAgents
    from tests.real_agents.model_server import ModelServer

ASKING = {
    "claude": ("--permission-mode", "default"),
    "codex": ("--sandbox", "workspace-write", "--ask-for-approval", "on-request"),
    "opencode": (),
}


def state_of_job(live: LiveAgents, job: str) -> tuple[str, str]:
    state = live.mam("explain", job, "--json").json["state"]
    return state["state"], state["source"]


@pytest.mark.parametrize("name", ASKING)
def test_a_hook_reports_a_permission_and_nothing_is_typed_over_the_dialog(live: LiveAgents, name: str) -> None:
    live.opencode_settings(permission={"bash": "ask"})
    live.start_agent(name, *ASKING[name])
    first = live.register(name, "beg touch asked.txt && echo please >asked.txt", "say Thank you.", artifact="asked.txt")
    second = live.register(name, "say Next.")
    worker = live.worker(name, "--drain", *(("--between", "/clear") if name == "claude" else ()))
    await_that(lambda: live.state_of(name)["state"] == "needs permission", longest=LONGEST)

    waits = ("asks", "protocol") if name == "claude" else ("needs permission", "hook")  # Claude's hook asks a question
    await_that(lambda: state_of_job(live, first) == waits, f"it is {state_of_job(live, first)}")
    assert live.state_of(name)["source"] == "hook"
    assert live.job(second)["status"] == "pending"
    assert not (live.mam.here / "asked.txt").exists()
    await_that(lambda: live.mam("agents", "send", name, "something else").code != 0)  # its dialog is on the screen
    live.tmux("send-keys", "-t", f"={name}:", "Enter")

    said = finish(worker)
    assert live.job(first)["status"] == "completed", said
    assert f"{name} waits for a person: " in said
    assert (live.job(second)["status"], live.job(second)["result"]) == ("completed", "Next.")


def test_while_one_session_asks_another_takes_the_jobs_of_their_label(live: LiveAgents) -> None:
    live.start_agent("claude", *ASKING["claude"])
    live.start_agent("codex")
    steps = ("beg touch asked.txt && echo please >asked.txt", "say Thank you.")
    asking = live.register("claude", *steps, artifact="asked.txt")
    worker = live.worker("claude", "--label", "claude-code", "--label", "codex")
    await_that(lambda: live.state_of("claude")["state"] == "needs permission", longest=LONGEST)
    others = [live.mam("register", "model: say Mine.", "--agent", "codex").line for _ in range(4)]

    finish(live.worker("codex", "--label", "codex", "--drain"))

    for job_id in others:
        job = live.job(job_id)
        assert (job["status"], job["run"]["session"]["name"]) == ("completed", "codex"), job["reason"]
    assert live.job(asking)["status"] == "running"
    live.tmux("send-keys", "-t", "=claude:", "Enter")
    await_that(lambda: live.job(asking)["status"] == "completed", longest=LONGEST)
    worker.terminate()
    assert "claude waits for a person: " in finish(worker)


def test_where_there_are_no_hooks_its_screen_asks_and_its_own_complete_ends_the_job(live: LiveAgents) -> None:
    """Without the plugin nothing lets OpenCode read its brief, so it asks."""
    live.start_agent("opencode", hooks=False)
    job_id = live.register("opencode", "run mam complete {job} --result 'said by the agent'", "hang")
    worker = live.worker("opencode", "--drain")
    await_that(lambda: live.state_of("opencode")["state"] == "needs permission", longest=LONGEST)

    assert live.state_of("opencode")["source"] == "screen"
    await_that(lambda: live.mam("explain", job_id, "--json").json["state"]["state"] == "needs permission")
    live.tmux("send-keys", "-t", "=opencode:", "Enter")

    finish(worker)
    job = live.job(job_id)
    assert (job["status"], job["result"]) == ("completed", "said by the agent")
    assert job["run"]["session"]["proof"] == "screen"
    assert job["run"]["turn"]["ended_by"] == "protocol"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", TOOLS)
def test_a_usage_limit_pauses_the_agent_and_after_the_reset_all_is_done(
    live: LiveAgents, model: ModelServer, name: str
) -> None:
    """One is tried first, the other follows; the agent's own waiting is broken off, so that nothing is done twice."""
    del live.mam.env["ANTHROPIC_API_KEY"]  # only an account's plan says when its limit ends
    live.mam.env["CLAUDE_CODE_OAUTH_TOKEN"] = "sk-ant-oat01-not-a-token"
    live.start_agent(name)
    first, second = (live.register(name, f"write {word} done", f"say {word}.", artifact=word) for word in ("a", "b"))
    resets_at = model.limit(130 if name == "opencode" else 60)  # it waits out a short one by itself, the others do not
    worker = live.worker(name)
    await_that(lambda: live.job(first)["status"] == "waiting", longest=LONGEST)

    job = live.job(first)
    assert (job["waiting_for"], job["retries"]) == ("reset", 0)
    assert job["run"]["turn"]["ended_by"] == ("protocol" if name == "codex" else "hook")
    assert live.job(second)["status"] == "pending"
    assert "tried first" in live.mam("explain", second).out
    (pause,) = live.mam("pause", "--list", "--json").json
    assert pause["agent"] == TOOLS[name]
    own_waits = ("Continuing automatically", "[retrying in")
    await_that(lambda: not any(words in live.shown(name) for words in own_waits))
    await_that(lambda: all(live.job(job_id)["ended_at"] for job_id in (first, second)), longest=LONGEST)
    worker.terminate()
    finish(worker)

    assert time.time() >= resets_at()
    for job_id, attempt in ((first, 2), (second, 1)):
        job = live.job(job_id)
        assert (job["status"], job["checked"], job["attempt"]) == ("completed", True, attempt), job["reason"]
        assert (job["retries"], job["losses"]) == (0, 0)
    assert live.mam("pause", "--list").out == ""
