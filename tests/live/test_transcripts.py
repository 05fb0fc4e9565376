"""Ends that no hook tells: Codex calls none at its vendor's refusal, but its transcript has it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mam.work.live.transcripts import end_in_transcript
from tests.live.harness import LiveHarness

LIMIT = "You've hit your usage limit. Upgrade to Pro, or try again at 8:45 AM."


def transcript(folder: Path, *payloads: dict[str, Any]) -> str:
    path = folder / "rollout.jsonl"
    lines = [json.dumps({"type": "event_msg", "payload": payload}) for payload in payloads]
    path.write_text("\n".join(["not json", *lines, '{"type":"event_msg","payload":{"type":"task_complete",']), "utf-8")
    return str(path)


def ended(turn: str, **fields: Any) -> dict[str, Any]:
    return {"type": "task_complete", "turn_id": turn, **fields}


@pytest.mark.parametrize(
    ("words", "failure"),
    [
        (LIMIT, "rate_limit"),
        ("We're currently experiencing high demand: the server is overloaded", "overloaded"),
        ("unexpected status 401 Unauthorized", "authentication_failed"),
        ("Quota exceeded. Check your plan and billing details.", "billing_error"),
        ("the context is full", "error"),
    ],
)
def test_a_refusal_is_reported_as_a_hook_would(tmp_path: Path, words: str, failure: str) -> None:
    path = transcript(tmp_path, ended("t1", error={"message": words}))

    told = end_in_transcript("codex", path, "t1")

    assert told is not None
    assert (told["hook_event_name"], told["error"], told["text"]) == ("StopFailure", failure, words)
    assert (told["turn"], told["by"]) == ("t1", "protocol")


def test_an_end_whose_hook_was_lost_is_found(tmp_path: Path) -> None:
    told = end_in_transcript("codex", transcript(tmp_path, ended("t1", last_agent_message="All done.")), "t1")

    assert told is not None
    assert (told["hook_event_name"], told["text"]) == ("Stop", "All done.")


def test_only_the_end_of_this_very_turn_counts(tmp_path: Path) -> None:
    path = transcript(tmp_path, ended("t0"), {"type": "task_started", "turn_id": "t1", "of": "task_complete"})

    assert end_in_transcript("codex", path, "t1") is None
    assert end_in_transcript("codex", path, "t") is None
    assert end_in_transcript("codex", path, "") is None
    assert end_in_transcript("claude-code", path, "t0") is None
    assert end_in_transcript("codex", str(tmp_path / "none"), "t0") is None


def test_a_session_rejected_by_its_vendor_is_not_busy(harness: LiveHarness) -> None:
    harness.agent("codex", "codex", given=("--transcript", str(harness.folder / "rollout.jsonl")))
    job_id = harness.register(f"agent: refused {LIMIT}", name="codex", tool="codex")

    worker = harness.work("--once", name="codex")
    worker.communicate(timeout=60)

    job = harness.job(job_id)
    assert (job["status"], job["waiting_for"], job["retries"]) == ("waiting", "reset", 0)
    assert job["run"]["turn"]["ended_by"] == "protocol"
    state = harness.status("codex")["state"]
    assert (state["state"], state["source"], state["why"]) == ("done", "protocol", "its turn ended with rate_limit")
    (pause,) = harness.mam("pause", "--list", "--json").json
    assert pause["agent"] == "codex"
