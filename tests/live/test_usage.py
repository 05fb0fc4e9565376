"""What a turn in a live session took, from what the real programs wrote: every answer of the model counts once."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from mam.agents.hook_events import log_line
from mam.agents.turns import Turn
from mam.work.live import usage
from mam.work.live.usage import turn_cost
from tests.live.harness import LiveHarness

HERE = Path(__file__).parent
CLAUDE, CODEX = HERE / "claude-transcript.jsonl", HERE / "codex-rollout.jsonl"
PRICES = {"input": 1.0, "cached": 0.1, "output": 10.0}
FIRST = Turn(name="9580d89f-b50a-40b4-8a45-5edd3538af21", continued_as=("fc4f3102-96a5-4fcf-905e-f15c8612610a",))
"""Its agent started a subagent and continued when that had ended."""
SECOND = Turn(name="1c01a77c-92ef-4237-b570-b06ec8519ebf")


def answers(count: int) -> dict[str, int]:
    """The tokens of so many answers of the scripted model."""
    return {"input": 100 * count, "cached": 11 * count, "output": 22 * count}


def claude(folder: Path) -> str:
    """The transcript as Claude Code has it, with its subagent's beside it."""
    path = folder / "5179.jsonl"
    shutil.copy(CLAUDE, path)
    (folder / "5179/subagents").mkdir(parents=True)
    shutil.copy(HERE / "claude-subagent.jsonl", folder / "5179/subagents/agent-1.jsonl")
    return str(path)


def test_claude_code_counts_subagents_and_continuations_of_the_turn_and_nothing_else(tmp_path: Path) -> None:
    path = claude(tmp_path)
    assert turn_cost("claude-code", path, FIRST, None) == {"tokens": answers(6), "cost_usd": None}
    assert turn_cost("claude-code", path, FIRST.replace(continued_as=()), None)["tokens"] == answers(5)
    assert turn_cost("claude-code", path, SECOND, None)["tokens"] == answers(3)


def test_an_answer_in_several_lines_counts_as_its_last_line_says(tmp_path: Path) -> None:
    """Claude Code writes a line for each part of an answer, with the tokens so far. Stored input is input."""
    path = tmp_path / "t.jsonl"
    parts = [{"output_tokens": 1}, {"output_tokens": 7, "input_tokens": 2, "cache_creation_input_tokens": 40}]
    lines: list[dict[str, Any]] = [{"type": "user", "promptId": "a", "message": {"content": "x"}}]
    lines += [{"type": "assistant", "message": {"id": "msg_1", "usage": part}} for part in parts]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    assert turn_cost("claude-code", str(path), Turn(name="a"), None)["tokens"] == {"output": 7, "input": 42}


def test_codex_has_running_totals() -> None:
    first, second = Turn(name="01a1f1e8-4ee5-72e1-a28e-caee57267bfb"), Turn(name="01a1f1e8-5b17-7000-a044-6517a650e82f")
    dollars = pytest.approx((300 * 1.0 + 33 * 0.1 + 66 * 10.0) / 1_000_000)
    for turn in (first, second):
        found = turn_cost("codex", str(CODEX), turn, PRICES)
        assert found == {"tokens": answers(3), "cost_usd": dollars, "cost_from": "prices"}


def test_the_plugin_of_opencode_tells_tokens_and_cost() -> None:
    told = {"input": 500, "cached": 55, "output": 110, "cost": 0.00315}
    line = log_line("opencode", {"hook_event_name": "Stop", "turn_id": "msg_1", "usage": told}, 1)
    found = turn_cost("opencode", "", Turn(name="msg_1", usage=line["usage"]), PRICES)
    assert found == {"tokens": answers(5), "cost_usd": 0.00315}


@pytest.mark.parametrize(
    "told",
    ["much", ["input"], {"input": "5"}, {"input": True}, {"input": -1}, {"input": 0.5}, {"input": 10**400}, {"x": 1},
     {"cost": float("nan")}, {"cost": float("inf")}, {"cost": -1}],
)  # fmt: skip
def test_figures_that_are_none_are_not_recorded(told: object) -> None:
    line = log_line("opencode", {"hook_event_name": "Stop", "turn_id": "msg_1", "usage": told}, 1)
    assert turn_cost("opencode", "", Turn(name="msg_1", usage=line.get("usage", "")), None) == {}


def test_what_cannot_be_read_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = claude(tmp_path)
    link, fifo = tmp_path / "link", tmp_path / "fifo"
    link.symlink_to(path)
    os.mkfifo(fifo)
    (tmp_path / "odd.jsonl").write_bytes(b'{"promptId": [1]}\n{"usage": \xff}\n[]\n"usage"\n' + b"[" * 100_000)
    for odd in (link, fifo, tmp_path, tmp_path / "none", tmp_path / "odd.jsonl", "\0"):
        assert turn_cost("claude-code", str(odd), FIRST, PRICES) == {}
    assert turn_cost("claude-code", path, Turn(name="another"), PRICES) == {}
    (tmp_path / "rollout").write_text('{"payload": {"type": "task_started", "turn_id": []}}\n', "utf-8")
    assert turn_cost("codex", str(tmp_path / "rollout"), FIRST, PRICES) == {}
    assert turn_cost("codex", path, FIRST, PRICES) == {}
    assert turn_cost("shell", path, FIRST, PRICES) == {}
    monkeypatch.setattr(usage, "SIZE_LIMIT", 1000)
    assert turn_cost("claude-code", path, SECOND, PRICES) == {}


@pytest.mark.external
def test_the_record_of_a_job_in_a_session_has_its_figures(harness: LiveHarness) -> None:
    harness.mam("config", "set", "prices.claude-code", "{input = 1, output = 10}")
    harness.agent(given=("--transcript", str(harness.folder / "t.jsonl")))
    first = harness.register("agent: answer 100 22\nagent: answer 100 22\nagent: say one")
    second = harness.register("agent: answer 7 3\nagent: say two")
    silent = harness.register("agent: say three")

    harness.drain()

    found = harness.job(first)["run"]["agent"]
    assert found["tokens"] == {"input": 200, "output": 44}
    assert (found["cost_usd"], found["cost_from"]) == (0.00064, "prices")
    assert harness.job(second)["run"]["agent"]["tokens"] == {"input": 7, "output": 3}
    assert "agent" not in harness.job(silent)["run"]
    shown = harness.mam("show", first).out
    assert "244 tokens · $0.0006" in shown
    assert "mam output" not in shown
    harness.mam("output", first).failed(1, "it ran in the live session claude")
    assert harness.mam("continue", first, "more", "--json").json["conversation"]["live"]["name"] == "claude"


@pytest.mark.external
def test_a_turn_that_waits_for_its_background_task_ends_with_the_agents_own_next_prompt(harness: LiveHarness) -> None:
    harness.agent()
    job_id = harness.register("agent: background\nagent: say It is all done.")

    harness.drain()

    job = harness.job(job_id)
    assert (job["status"], job["result"]) == ("completed", "It is all done.")
    assert len(harness.typed()) == 1
