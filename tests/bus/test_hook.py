"""`mam hook`: an agent's hook becomes an event, and never disturbs the agent."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mam.agents.hook_events import event_from_hook
from tests.bus.following import local_store
from tests.cli.command import Mam

CANARY = "sk-canary-4f1c9e"
COMMON = {
    "session_id": "0d292d75", "transcript_path": f"/home/me/{CANARY}.jsonl", "cwd": f"/home/me/{CANARY}",
    "prompt_id": "6ab40921", "permission_mode": "default",
}  # fmt: skip
"""What Claude Code 2.1 gives to every hook; Codex has turn_id and model in place of prompt_id."""
TOOL = {"tool_name": "Write", "tool_input": {"file_path": f"/x/{CANARY}", "content": CANARY}, "tool_use_id": "toolu_1"}

HOOKS: list[tuple[dict[str, Any], str | None]] = [
    ({"hook_event_name": "SessionStart", "source": "startup", "model": "m"}, "started"),
    ({"hook_event_name": "SessionStart", "source": "resume"}, "progress"),
    ({"hook_event_name": "SessionStart", "source": "compact"}, "progress"),
    ({"hook_event_name": "UserPromptSubmit", "prompt": CANARY}, "progress"),
    ({"hook_event_name": "PreToolUse", **TOOL}, "progress"),
    ({"hook_event_name": "PreToolUse", "tool_name": "AskUserQuestion", "tool_input": {"q": CANARY}},
     "permission_required"),
    ({"hook_event_name": "PreToolUse", "tool_name": "ExitPlanMode", "tool_input": {"p": CANARY}},
     "permission_required"),
    ({"hook_event_name": "PermissionRequest", **TOOL, "permission_suggestions": []}, "permission_required"),
    ({"hook_event_name": "PermissionRequest", "turn_id": "t", "model": "gpt", "tool_name": "shell", "tool_input": {}},
     "permission_required"),
    ({"hook_event_name": "Notification", "notification_type": "permission_prompt", "message": CANARY},
     "permission_required"),
    ({"hook_event_name": "Notification", "notification_type": "idle_prompt", "message": CANARY}, "permission_required"),
    ({"hook_event_name": "Notification", "notification_type": "auth_success", "message": CANARY}, None),
    ({"hook_event_name": "Notification", "message": CANARY}, None),
    ({"hook_event_name": "Elicitation", "message": CANARY}, "permission_required"),
    ({"hook_event_name": "PostToolUse", **TOOL, "tool_response": {"content": CANARY}}, "progress"),
    ({"hook_event_name": "Stop", "last_assistant_message": CANARY, "stop_hook_active": False}, "progress"),
    ({"hook_event_name": "Stop", "turn_id": "t", "last_assistant_message": None}, "progress"),
    ({"hook_event_name": "StopFailure", "error": "rate_limit", "error_details": CANARY}, "progress"),
    ({"hook_event_name": "SubagentStop", "agent_type": CANARY}, "progress"),
    ({"hook_event_name": "SessionEnd", "reason": "other"}, "progress"),
    ({"hook_event_name": "PreCompact", "custom_instructions": CANARY}, "progress"),
    ({"hook_event_name": "MessageDisplay", "text": CANARY}, None),
    ({"hook_event_name": CANARY}, None),
]  # fmt: skip


@pytest.mark.parametrize(("given", "event"), HOOKS)
def test_a_hook_becomes_an_event_without_private_text(given: dict[str, Any], event: str | None) -> None:
    told = event_from_hook("claude-code", {**COMMON, **given})

    assert (None if told is None else told[0]) == event
    assert CANARY not in json.dumps(told)
    if told is not None:
        assert told[2]["source"] == "claude-code hook"
        assert told[2]["hook"] == given["hook_event_name"]


def test_names_that_may_be_private_text_are_left_out() -> None:
    told = event_from_hook("claude-code", {"hook_event_name": "PermissionRequest", "tool_name": f"rm -rf {CANARY}\n"})

    assert told == (
        "permission_required", "claude-code needs permission for a tool",
        {"source": "claude-code hook", "hook": "PermissionRequest"},
    )  # fmt: skip


def _hook(mam: Mam, job: str | None, given: object, *words: str) -> None:
    stdin = given if isinstance(given, bytes) else json.dumps(given).encode()
    ran = mam("hook", *words, stdin=stdin, MAM_JOB_ID=job or "")
    assert (ran.code, ran.stdout, ran.stderr) == (0, b"", "")


def test_a_hook_is_stored_as_an_event(mam: Mam) -> None:
    job = mam.register()

    _hook(mam, job, {**COMMON, "hook_event_name": "PermissionRequest", **TOOL}, "claude-code")

    (event,) = local_store(mam).events(job)
    assert (event["event"], event["detail"]) == ("permission_required", "claude-code needs permission for Write")
    assert event["data"] == {"source": "claude-code hook", "hook": "PermissionRequest", "tool": "Write"}


def test_outside_of_a_job_it_does_nothing(mam: Mam) -> None:
    job = mam.register()

    _hook(mam, None, {**COMMON, "hook_event_name": "PermissionRequest"}, "claude-code")

    assert local_store(mam).events(job) == []


@pytest.mark.parametrize(
    "given",
    [b"", b"nonsense", b"[]", b"null", b"7", b'{"hook_event_name": 7}', b"{}", b"\xff\xfe", b"[" * 100_000,
     b'{"hook_event_name": "Stop"', b'"' + b"x" * 5_000_000],
)  # fmt: skip
def test_bad_input_does_not_fail_the_hook(mam: Mam, given: bytes) -> None:
    job = mam.register()

    _hook(mam, job, given)

    assert local_store(mam).events(job) == []


@pytest.mark.parametrize(
    "words", [["--bogus"], ["a", "b", "c"], ["--store"], ["--store", "/nowhere"], ["--json"], ["\n"]]
)
def test_bad_arguments_do_not_fail_the_hook(mam: Mam, words: list[str]) -> None:
    _hook(mam, mam.register(), {"hook_event_name": "Stop"}, *words)


def test_an_unknown_job_does_not_fail_the_hook(mam: Mam) -> None:
    _hook(mam, "nosuchjob", {"hook_event_name": "Stop"})
    mam.register()
    _hook(mam, "nosuchjob", {"hook_event_name": "Stop"})
    for attempt in ("7", "x", "-1"):
        ran = mam("hook", stdin=b'{"hook_event_name": "Stop"}', MAM_JOB_ID=mam.register(), MAM_ATTEMPT=attempt)
        assert (ran.code, ran.stdout, ran.stderr) == (0, b"", "")


def test_a_hook_does_not_wait(mam: Mam, tmp_path: Path) -> None:
    """With a stdin that never ends, a door that never answers or a locked store, the hook still ends in time."""
    job = mam.register()
    reading, writing = os.pipe()
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(tmp_path / "door"))
        door.listen(1)
        silent = {**mam.env, "MAM_JOB_ID": job, "MAM_SOCKET": str(tmp_path / "door")}
        for stdin, env in ((reading, {**mam.env, "MAM_JOB_ID": job}), (subprocess.DEVNULL, silent)):
            ran = subprocess.run([sys.executable, "-m", "mam", "hook"], stdin=stdin, env=env, cwd=mam.here, timeout=60)
            assert ran.returncode == 0
        lock = mam.here / ".mam" / "jobs" / ".lock"
        with lock.open("r+") as held:
            import fcntl

            fcntl.flock(held, fcntl.LOCK_EX)
            _hook(mam, job, {"hook_event_name": "Stop"})
    os.close(reading)
    os.close(writing)


def test_at_a_door_it_imports_next_to_nothing(mam: Mam, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(tmp_path / "door"))
        door.listen(1)
        process = subprocess.Popen(
            [sys.executable, "-X", "importtime", "-c",
             "import sys, os\nsys.argv[1:] = ['hook', 'codex']\nkept = os.dup(2)\nimport mam.__main__ as m\n"
             "m.run(sys.argv[1:])\nos.write(kept, ' '.join(sys.modules).encode())"],
            stdin=subprocess.PIPE, stderr=subprocess.PIPE, cwd=mam.here,
            env={**mam.env, "MAM_JOB_ID": "abc", "MAM_SOCKET": str(tmp_path / "door"), "MAM_ATTEMPT": "2",
                 "MAM_CLAIM": "mine"},
        )  # fmt: skip
        assert process.stdin is not None
        process.stdin.write(b'{"hook_event_name": "Stop"}')
        process.stdin.close()
        process.stdin = None
        visitor, _ = door.accept()
        asked = json.loads(visitor.recv(65536))
        visitor.sendall(b'{"job": {"job_id": "abc", "last_seq": 1}}\n')
        visitor.close()
        _, err = process.communicate(timeout=60)

    loaded = set(err.decode().splitlines()[-1].split())
    assert asked == {
        "verb": "publish", "job": "abc", "whole": False, "attempt": 2, "claim_id": "mine", "event": "progress",
        "detail": "codex ended its turn", "data": {"source": "codex hook", "hook": "Stop"},
    }  # fmt: skip
    assert not loaded & {"json", "re", "argparse", "socket", "subprocess", "logging", "mam.registry", "mam.stores.port"}
