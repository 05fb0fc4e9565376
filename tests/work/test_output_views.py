"""`mam output` and `mam run` of a coding agent: a conversation on a terminal, bytes in a pipe, items with --json."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from tests.cli.terminal import CTRL_C, Terminal
from tests.work.agent_facts import TESTED
from tests.work.replay import KEPT, Replay, recorded
from tests.work.worker_commands import ended, no_process_left, plain_fixture

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.command import Mam

__all__ = ["no_process_left", "plain_fixture"]


def plays(mam: Mam, tmp_path: Path, agent: str, *scenes: dict[str, object]) -> None:
    replay = Replay(agent, tmp_path)
    replay.plays(*scenes)
    mam.env["PATH"] = f"{replay.folder}:{mam.env['PATH']}"
    mam.env["CI"] = "1"  # its jobs may not ask, which a recording could not


def colours_removed(shown: bytes) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", shown.decode()).replace("\r\n", "\n")


@pytest.mark.parametrize("agent", TESTED)
def test_a_terminal_shows_a_conversation(plain: Mam, tmp_path: Path, agent: str) -> None:
    plays(plain, tmp_path, agent, recorded(f"{agent}-write", files=["notes.txt"]))
    job = plain("run", "-d", "write it", "--agent", agent).line
    ended(plain, job)
    output = (KEPT / f"{agent}-write.out").read_bytes()

    shown = colours_removed(plain.on_terminal("output", job).stdout)
    assert "notes.txt" in shown
    assert "  I wrote it.\n" in shown
    assert "{" not in shown
    assert plain("output", job).stdout == output
    assert plain.on_terminal("output", job, "--raw").stdout.replace(b"\r\n", b"\n") == output
    items = [json.loads(line) for line in plain("output", job, "--json").out.splitlines()]
    assert {"kind": "said", "text": "I wrote it.", "by": "agent"} in items
    assert items[-1] == {"kind": "ended", "ok": True, "text": ""}


def test_no_color_leaves_out_colours(plain: Mam, tmp_path: Path) -> None:
    plays(plain, tmp_path, "codex", recorded("codex-write"))
    job = plain("run", "-d", "write it", "--agent", "codex").line
    ended(plain, job)
    plain.env["NO_COLOR"] = "1"
    assert b"\x1b" not in plain.on_terminal("output", job, columns=60).stdout


def test_tail_prints_the_last_lines_of_a_conversation(plain: Mam, tmp_path: Path) -> None:
    plays(plain, tmp_path, "codex", recorded("codex-write"))
    job = plain("run", "-d", "write it", "--agent", "codex").line
    ended(plain, job)
    whole = plain("output", job).out.splitlines(keepends=True)
    assert plain("output", job, "--tail", "2").out == "".join(whole[-2:])
    kinds = [json.loads(line)["kind"] for line in plain("output", job, "--json", "--tail", "2").out.splitlines()]
    assert kinds == ["said", "cost", "ended"]
    plain("output", job, "--tail", "0").failed(2, "--tail")
    plain("output", job, "--raw", "--json").failed(2, "--raw or --json")


@pytest.mark.external
def test_a_tool_that_runs_is_shown_and_then_replaced(plain: Mam, tmp_path: Path) -> None:
    lines = (KEPT / "codex-write.out").read_text("utf-8").splitlines(keepends=True)
    begun = "".join(lines[:4])
    assert "in_progress" in lines[3]
    plays(plain, tmp_path, "codex", recorded("codex-write", out=begun + lines[4][:20], stays=True))
    argv = plain._argv(("run", "write it", "--agent", "codex"))
    with Terminal(argv, plain.here, plain.env, columns=80) as terminal:
        terminal.shows("▹ ran   echo 'it was me' > notes.txt")
        assert "item.completed" not in terminal.text  # the part of a line waits for its rest
        terminal.type(CTRL_C)
        terminal.shows("detached")
        terminal.type(CTRL_C)
        terminal.shows("cancelled")
        assert terminal.text.count("ran   echo") == 1
