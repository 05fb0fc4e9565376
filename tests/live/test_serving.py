"""Jobs that a live session does: handed over once, seen to begin and to end, checked like any other."""

from __future__ import annotations

import pytest

from tests.live.stage import Stage

pytestmark = pytest.mark.external


@pytest.mark.parametrize("tool", ["claude-code", "codex"])
def test_a_session_does_a_job_and_its_hooks_report_it(stage: Stage, tool: str) -> None:
    stage.agent("claude", tool)
    job_id = stage.register("agent: write notes.txt made\nagent: say All is written.", "--artifact", "notes.txt")

    stage.drain()

    job = stage.job(job_id)
    assert (job["status"], job["checked"], job["result"]) == ("completed", True, "All is written.")
    assert job["run"]["session"]["proof"] == "hook"
    assert job["run"]["turn"]["ended_by"] == "hook"
    assert len(stage.typed()) == 1
    assert stage.typed()[0].endswith(f"(mam:{job_id}.1)")
