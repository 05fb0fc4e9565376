"""What a person sees of a real agent: a conversation without a line that mam does not understand."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from tests.real_agents.agent_setup import AgentSetup
from tests.real_agents.homes import HOMES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real_agents.model_server import ModelServer

PROMPT = "model: write notes.txt it was me\nmodel: say I **wrote** it."


@pytest.mark.parametrize("agent", HOMES)
def test_a_run_on_a_terminal(agent: str, tmp_path: Path, model: ModelServer) -> None:
    setup = AgentSetup(agent, tmp_path, model)
    shown = setup.mam.on_terminal("run", PROMPT, "--agent", agent, "--artifact", "notes.txt", columns=80)
    text = re.sub(r"\x1b\[[0-9;]*[mAJ]", "", shown.stdout.decode())
    print(text)
    assert shown.code == 0
    assert re.search(r"▸ (write|ran) .*notes\.txt", text)
    assert "  I wrote it." in text
    assert "notes.txt found" in text
    assert '{"' not in text

    (job,) = setup.mam("list", "--json").json
    items = [json.loads(line) for line in setup.mam("output", job["job_id"], "--json").out.splitlines()]
    unknown = [item["text"] for item in items if item["kind"] == "line" and item["text"].startswith("{")]
    assert unknown == []
    (cost,) = [item for item in items if item["kind"] == "cost"]
    assert (cost["input"], cost["cached"], cost["output"]) == (200, 22, 44)
    assert items[-1] == {"kind": "ended", "ok": True, "text": ""}
