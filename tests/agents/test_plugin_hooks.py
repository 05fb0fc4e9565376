"""The hooks of the plugin, in sessions that mam did not start: what they report, and that they disturb no other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mam.plugin.hooks import SCRIPT
from tests.agents.sessions import Sessions
from tests.cli.command import Mam
from tests.waiting import await_that

ASKS = {"hook_event_name": "PermissionRequest", "tool_name": "Bash", "session_id": "s", "turn_id": "t"}


def _installed(mam: Mam) -> Path:
    """The script of the plugin. The `mam` that it finds notes each start in the file `starts`."""
    folder = mam.home / "bin"
    folder.mkdir()
    program = folder / "mam"
    program.write_text(f'#!/bin/sh\necho "$@" >>"{mam.home}/starts"\nexec "{sys.executable}" -m mam "$@"\n', "utf-8")
    program.chmod(0o755)
    mam.env["PATH"] = f"{folder}:{os.environ['PATH']}"
    assert mam("plugin", "install", "--agent", "claude-code", "--yes").code == 0
    return mam.home / ".local/share/mam/plugin/mam" / SCRIPT


def _starts(mam: Mam) -> list[str]:
    path = mam.home / "starts"
    return path.read_text("utf-8").splitlines() if path.exists() else []


def _run(mam: Mam, script: Path, given: bytes, **env: str) -> None:
    """As an agent runs it: it takes all of the input, prints nothing and exits with 0."""
    ran = subprocess.run(["sh", str(script)], input=given, capture_output=True, cwd=mam.here, env={**mam.env, **env})
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")


@pytest.mark.parametrize(
    "env",
    [
        {},
        {"TMUX": "/tmp/tmux-0/default,4242,0", "TMUX_PANE": "%1"},
        {"TMUX": "/tmp/tmux-0/default,4242,0"},
        {"TMUX": "$(touch made)", "TMUX_PANE": "`touch made`"},
        {"MAM_SESSION_DIR": "/somewhere", "MAM_GENERATION": "g"},
        {"MAM_JOB_ID": "a" * 32, "MAM_SOCKET": "/somewhere"},
        {"MAM_JOB_ID": "a" * 32, "MAM_STORE_MARK": "x"},
    ],
)
def test_elsewhere_and_in_what_mam_started_they_do_not_start_mam(mam: Mam, env: dict[str, str]) -> None:
    script = _installed(mam)
    _run(mam, script, json.dumps({**ASKS, "tool_input": "x" * 2_000_000}).encode(), **env)

    assert _starts(mam) == []
    assert not list(mam.here.iterdir())


def test_in_a_claimed_job_they_report_and_renew_its_lease(mam: Mam) -> None:
    script = _installed(mam)
    job = mam("register", "p", "--agent", "claude-code", "-s", "x").line
    claim = dict(line.split("=", 1) for line in mam("pick", "-s", "x", "--export").out.split())
    claim = {name: value.strip("'\"") for name, value in claim.items() if name.startswith("MAM_")}
    _run(mam, script, json.dumps(ASKS).encode(), **claim)

    assert _starts(mam) == ["hook claude-code"]
    events = mam("logs", job, "--json").out
    assert "claude-code needs permission for Bash" in events


def test_without_mam_they_are_silent(mam: Mam) -> None:
    script = _installed(mam)
    (mam.home / "bin/mam").unlink()
    _run(mam, script, json.dumps(ASKS).encode(), PATH="/usr/bin:/bin", MAM_JOB_ID="a" * 32)


def test_an_adopted_session_shows_what_its_hooks_report(sessions: Sessions) -> None:
    """Its program was started by hand, so its environment says nothing about mam."""
    mam = sessions.mam
    script = _installed(mam)
    given = mam.home / "given"
    hook = f"sh {script} <{given} && tmux wait-for -S reported"

    def report(hook_input: dict[str, str]) -> None:
        given.write_text(json.dumps(hook_input), "utf-8")
        sessions.tmux("send-keys", "-t", "=work:", hook, "Enter", server="default")
        sessions.tmux("wait-for", "reported", server="default")

    sessions.tmux("new-session", "-d", "-s", "work", "-e", f"HOME={mam.home}", "sh", server="default")
    report(ASKS)
    assert _starts(mam) == []
    sessions.mam("agents", "adopt", "gpu", "--session", "work", "--agent", "claude-code")
    report({"hook_event_name": "UserPromptSubmit", "turn_id": "t", "prompt": "p"})
    report(ASKS)

    state = sessions.status("gpu")["state"]
    assert (state["state"], state["source"]) == ("needs permission", "hook")
    assert _starts(mam) == ["hook claude-code"] * 2


def test_a_pane_of_another_server_is_not_the_adopted_one(sessions: Sessions) -> None:
    """Also where it has the number of a server that has ended."""
    mam = sessions.mam
    sessions.tmux("new-session", "-d", "-s", "work", "cat", server="default")
    sessions.mam("agents", "adopt", "gpu", "--session", "work", "--agent", "claude-code")
    (note,) = (mam.home / ".local/state/mam/adopted").iterdir()
    root = json.loads(note.read_text("utf-8"))["root"]
    server, _, pane = note.name.partition("%")
    env = {"TMUX": f"/tmp/x,{server},0", "TMUX_PANE": f"%{pane}"}
    sessions.tmux("kill-server", server="default")
    await_that(lambda: not Path(f"/proc/{server}").exists())
    _hook(mam, **env)
    assert not list(Path(root).glob("hooks-*"))

    sessions.tmux("new-session", "-d", "-s", "work", "cat", server="default")
    sessions.mam("agents", "adopt", "gpu", "--session", "work", "--agent", "claude-code")
    (other,) = (mam.home / ".local/state/mam/adopted").iterdir()
    assert other != note


def _hook(mam: Mam, **env: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "mam", "hook", "claude-code"], input=json.dumps(ASKS).encode(), env={**mam.env, **env}
    )
    assert ran.returncode == 0
