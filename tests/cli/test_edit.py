"""`mam edit`: by options and in an editor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.cli.terminal import Terminal

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.command import Mam


def editor(mam: Mam, tmp_path: Path, script: str) -> None:
    path = tmp_path / "editor"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)
    mam.env |= {"EDITOR": str(path), "TMPDIR": str(tmp_path)}


def test_options_change_the_job(mam: Mam) -> None:
    job = mam.register()
    assert (
        mam("edit", job[:8], "--prompt-file", "-", "--priority", "5", "--label", "night", stdin=b"do more").line == job
    )
    found = mam.record(job)
    assert (found["prompt"], found["priority"], found["agent_session"]) == ("do more", 5, "night")
    assert mam("edit", job, "--at", "+1h", "--json").json["status"] == "waiting"
    assert "edited" in mam("logs", job).out
    assert "prompt, agent_session, priority" in mam("logs", job).out


def test_invalid_edits_are_rejected(mam: Mam) -> None:
    job = mam.register()
    mam("edit", job).failed(2, "--prompt-file")
    mam("edit", job, "--priority", "5000").failed(2, "priority")
    mam("edit", job, "--label", "").failed(2, "label")
    mam("edit", job, "--prompt-file", "-", stdin=b" ").failed(2, "prompt")
    mam("edit", "nope", "--priority", "1").failed(1, "No job")
    mam("pick", "-s", "shell")
    mam("edit", job, "--priority", "5").failed(1, "is running", "no worker has claimed")
    assert mam.record(job)["priority"] == 0


def test_a_person_edits_the_prompt(mam: Mam, tmp_path: Path) -> None:
    job = mam.register("fix it")
    editor(mam, tmp_path, 'grep -qx "fix it" "$1" && echo "fix it well" > "$1"')
    with Terminal(mam._argv(("edit", job)), mam.here, mam.env) as terminal:
        terminal.shows("changed", job)
        assert terminal.ended() == 0
    assert mam.record(job)["prompt"] == "fix it well\n"
    assert list(tmp_path.glob("mam-*.md")) == []


def test_a_claim_while_the_editor_is_open_rejects_the_edit_and_keeps_the_text(mam: Mam, tmp_path: Path) -> None:
    job = mam.register("fix it")
    editor(mam, tmp_path, f'{" ".join(mam._argv(("pick", "-s", "shell")))} >/dev/null; echo "too late" > "$1"')
    with Terminal(mam._argv(("edit", job)), mam.here, mam.env, columns=300) as terminal:
        terminal.shows("your text is in", "is running")
        assert terminal.ended() == 1
    assert mam.record(job)["prompt"] == "fix it"
    (kept,) = tmp_path.glob("mam-*.md")
    assert kept.read_text() == "too late\n"


def test_an_editor_that_fails_changes_nothing(mam: Mam, tmp_path: Path) -> None:
    job = mam.register("fix it")
    editor(mam, tmp_path, 'echo broken > "$1"; exit 3')
    with Terminal(mam._argv(("edit", job)), mam.here, mam.env, columns=300) as terminal:
        terminal.shows("exited with 3")
        assert terminal.ended() == 1
    assert mam.record(job)["prompt"] == "fix it"
    assert list(tmp_path.glob("mam-*.md")) == []
