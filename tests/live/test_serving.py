"""Jobs that a live session does: handed over once, seen to begin and to end, checked like any other."""

from __future__ import annotations

import pytest

from tests.live.harness import LiveHarness

pytestmark = pytest.mark.external


@pytest.mark.parametrize("tool", ["claude-code", "codex"])
def test_a_session_does_a_job_and_its_hooks_report_it(harness: LiveHarness, tool: str) -> None:
    harness.agent("claude", tool)
    job_id = harness.register("agent: write notes.txt made\nagent: say All is written.", "--artifact", "notes.txt")

    harness.drain()

    job = harness.job(job_id)
    assert (job["status"], job["checked"], job["result"]) == ("completed", True, "All is written.")
    assert job["run"]["session"]["proof"] == "hook"
    assert job["run"]["turn"]["ended_by"] == "hook"
    assert len(harness.typed()) == 1
    assert harness.typed()[0].endswith(f"(mam:{job_id}.1)")
