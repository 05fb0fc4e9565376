"""Completion: what is offered, and what a real bash, zsh and fish make of it when Tab is pressed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mam.__main__ import VERBS, run
from tests.cli.command import Mam
from tests.cli.terminal import Terminal
from tests.needs import need


def offered(mam: Mam, *words: str) -> list[str]:
    ran = mam("completion", "words", "--", *words)
    assert ran.code == 0
    assert ran.stderr == ""
    return [line.partition("\t")[0] for line in ran.out.splitlines()]


@pytest.fixture
def jobs(mam: Mam) -> dict[str, str]:
    found = {
        "pending": mam.register("sort it", "-s", "tmux:claude"),
        "running": mam.register("run it", "-s", "b"),
        "completed": mam.register("done", "-s", "c"),
    }
    mam("pick", "-s", "b")
    mam("pick", "-s", "c")
    mam("complete", found["completed"])
    return found


def test_verbs_and_options_are_completed(mam: Mam) -> None:
    assert offered(mam, "") == list(VERBS)
    assert offered(mam, "comp") == ["complete", "completion"]
    assert offered(mam, "--store", "/x", "he") == ["heartbeat"]
    assert offered(mam, "list", "--st") == ["--status", "--store"]
    assert offered(mam, "config", "") == ["list", "get", "set", "unset", "path", "edit"]
    assert offered(mam, "config", "get", "broker.h") == ["broker.host"]
    assert offered(mam, "register", "x", "--permissions", "") == ["ask", "edit", "full"]
    assert offered(mam, "completion", "") == ["bash", "zsh", "fish"]
    assert offered(mam, "help", "wh") == ["where"]
    assert offered(mam, "complete", "--result-file", "") == [":files"]
    assert offered(mam, "run", "--", "ma") == [":files"]
    assert offered(mam, "no-such-verb", "") == []
    assert offered(mam, "list", "--status", "pending,co") == ["pending,completed"]


def test_every_verb_can_be_completed(
    mam: Mam, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(mam.here)

    def offers(*words: str) -> list[str]:
        assert run(["completion", "words", "--", *words]) == 0
        shown = capsys.readouterr()
        assert shown.err == ""
        return [line.partition("\t")[0] for line in shown.out.splitlines()]

    for verb in VERBS:
        offers(verb, "")
        assert "--json" in offers(verb, "--js") or verb in (
            "agents",
            "admin",
            "config",
            "inbox",
            "plugin",
            "rules",
            "skill",
            "token",
        ), verb


def test_jobs_labels_and_agents_are_live(mam: Mam, jobs: dict[str, str]) -> None:
    assert set(offered(mam, "get", "")) == {job[:8] for job in jobs.values()}
    assert offered(mam, "complete", "") == [jobs["running"][:8]]
    assert offered(mam, "result", "") == [jobs["completed"][:8]]
    assert offered(mam, "get", jobs["pending"][:10]) == [jobs["pending"]]
    assert set(offered(mam, "pick", "-s", "")) == {"tmux:claude", "b", "c"}
    assert offered(mam, "pick", "--registry-dir", "/nowhere", "-s", "") == []
    assert offered(mam, "pick", "--store", str(mam.here / ".mam/jobs"), "-s", "t") == ["tmux:claude"]
    assert "shell" in offered(mam, "register", "x", "--agent", "")


def test_completion_creates_and_prints_nothing(mam: Mam) -> None:
    assert offered(mam, "get", "") == []
    assert not (mam.here / ".mam").exists()
    (mam.home / "config/mam").mkdir(parents=True)
    (mam.home / "config/mam/config.toml").write_text("broken =\n")
    assert offered(mam, "get", "") == []
    assert "list" in offered(mam, "")
    mam("completion").failed(2, "bash, zsh, fish")
    mam("completion", "tcsh").failed(2, "bash, zsh, fish")


# -- real shells -----------------------------------------------------------------------------------------------------

SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "PS1='ready> '; bind 'set show-all-if-ambiguous on'"),
    "zsh": (["zsh", "-f", "-i"], "PROMPT='ready> '; autoload -Uz compinit; compinit -D -u"),
    "fish": (["fish", "--no-config", "-i"], "function fish_prompt; echo -n 'ready> '; end"),
}
SOURCE = {"fish": "mam completion fish | source"}


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest, mam: Mam) -> Iterator[Terminal]:
    """A shell in which mam's completion is loaded."""
    name: str = request.param
    need(name)
    programs = mam.home / "bin"
    programs.mkdir()
    command = programs / "mam"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mam "$@"\n')
    command.chmod(0o755)
    env = {**mam.env, "PATH": f"{programs}:{os.environ['PATH']}", "LANG": "C.UTF-8", "TERM": "xterm"}
    argv, prepare = SHELLS[name]
    with Terminal(argv, mam.here, env, columns=100, rows=40) as terminal:
        terminal.type(f"{prepare}\n")
        terminal.shows("ready> ")
        source = SOURCE.get(name, f'eval "$(mam completion {name})"')
        terminal.type(f"{source}; echo loa''ded\n")
        terminal.shows("loaded")
        yield terminal


@pytest.mark.external
def test_tab_completes_in_a_real_shell(shell: Terminal, mam: Mam, jobs: dict[str, str]) -> None:
    shell.type("mam heart\t")
    shell.shows("ready> mam heartbeat")
    shell.type("\x15mam complete \t")
    shell.shows(f"ready> mam complete {jobs['running'][:8]}")
    shell.type("\x15mam pick -s tm\t")
    shell.shows("ready> mam pick -s tmux:claude")
    shell.type("\x15mam list --status cance\t")
    shell.shows("ready> mam list --status cancelled")
    shell.type("\x15mam pick -s tmux:cl\t --json | head -n 3\n")
    shell.shows(jobs["pending"])


@pytest.mark.external
def test_a_label_cannot_become_a_command(shell: Terminal, mam: Mam) -> None:
    mam.register("evil", "-s", "x$(touch pwned);touch pwned2")
    mam.register("evil", "-s", "it's `touch pwned3`")
    shell.type("mam list -s x\t\n")
    shell.shows("ready> ")
    shell.type("mam list -s it\t\n")
    shell.type("echo e''nd\n")
    shell.shows("\nend")
    assert [name for name in os.listdir(mam.here) if name.startswith("pwned")] == []


def test_files_are_left_to_the_shell(shell: Terminal, mam: Mam) -> None:
    (Path(mam.here) / "a_prompt_for_you.md").write_text("x")
    shell.type("mam register --prompt-file a_pro\t")
    shell.shows("--prompt-file a_prompt_for_you.md")
