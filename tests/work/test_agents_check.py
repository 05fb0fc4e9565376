"""`mam agents check`, with programs that print the recorded answers of the real ones."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

import pytest

from mam.agent_table import CODING_AGENTS
from mam.work.adapters.installed import is_newer
from tests.cli.command import Mam
from tests.work.agent_facts import AGENT_FACTS, TESTED
from tests.work.replay import KEPT, PROGRAMS

if TYPE_CHECKING:
    from pathlib import Path

_SCRIPT = """#!{python} -IS
import json, sys
told = json.load(open({file!r}, encoding="utf-8"))
words = " ".join(sys.argv[1:])
if words not in told:
    sys.exit("error: unknown command")
sys.stdout.write(told[words])
"""


@pytest.fixture
def mam(tmp_path: Path) -> Mam:
    (tmp_path / "here").mkdir()
    mam = Mam(tmp_path / "here", tmp_path / "home")
    (tmp_path / "bin").mkdir()
    mam.env["PATH"] = str(tmp_path / "bin")
    return mam


def install(mam: Mam, agent: str, *, without: str = "", instead: str = "--gone") -> None:
    """As it was recorded, but for an option that this one does not have."""
    told = (KEPT / f"{agent}.help.json").read_text("utf-8")
    folder = mam.home.parent / "bin"
    file = folder / f"{agent}.json"
    file.write_text(told.replace(without, instead) if without else told, "utf-8")
    program = folder / PROGRAMS[agent]
    program.write_text(_SCRIPT.format(python=sys.executable, file=str(file)))
    program.chmod(0o755)


def test_the_recorded_versions_have_every_option_that_is_used(mam: Mam) -> None:
    for agent in TESTED:
        install(mam, agent)

    ran = mam("agents", "check", *TESTED, "--json")

    assert ran.code == 0, ran.stderr
    assert [(one["agent"], one["state"], one["absent"]) for one in ran.json] == [(name, "ok", []) for name in TESTED]
    assert all(one["version"] and os.path.isabs(one["program"]) for one in ran.json)


def test_one_installed_agent_is_sufficient(mam: Mam) -> None:
    install(mam, "codex")

    ran = mam("agents", "check")

    assert ran.code == 0
    assert "npm install -g opencode-ai" in ran.out
    assert mam("agents", "check", "opencode").code == 1
    assert mam("agents", "check", "codex").code == 0


def test_nothing_at_all_is_a_fault(mam: Mam) -> None:
    ran = mam("agents", "check", "--json")
    assert (ran.code, {one["state"] for one in ran.json}) == (1, {"not installed"})


@pytest.mark.parametrize("agent", TESTED)
def test_an_option_that_is_gone_is_named(mam: Mam, agent: str) -> None:
    flag = AGENT_FACTS[agent].option
    install(mam, agent, without=flag)

    ran = mam("agents", "check", agent)

    assert ran.code == 1
    assert f"no {flag}" in ran.out
    assert "@latest" in ran.out


def test_a_program_that_does_not_run_is_reported(mam: Mam) -> None:
    program = mam.home.parent / "bin" / "claude"
    program.write_text("#!/nowhere/node\n")
    program.chmod(0o755)

    ran = mam("agents", "check", "claude-code")

    assert ran.code == 1
    assert "does not run" in ran.out


def test_an_unknown_agent_name_is_a_usage_error(mam: Mam) -> None:
    mam("agents", "check", "codx").failed(2, "did you mean codex?")


def test_the_recordings_are_of_the_pinned_versions() -> None:
    pinned = json.loads((KEPT.parents[1] / "real_agents" / "package.json").read_text())["dependencies"]
    for agent in TESTED:
        answer = json.loads((KEPT / f"{agent}.help.json").read_text("utf-8"))["--version"]
        assert pinned[CODING_AGENTS[agent].package] in answer


def test_a_version_newer_than_the_tested_one_is_named_and_can_be_used(mam: Mam) -> None:
    install(mam, "codex", without=CODING_AGENTS["codex"].tested, instead="99.0.1")

    ran = mam("agents", "check", "codex")

    assert ran.code == 0
    assert "newer than 0.166.0" in ran.out
    assert mam("agents", "check", "codex", "--json").json[0]["tested"] == "0.166.0"


@pytest.mark.parametrize("agent", TESTED)
def test_the_tested_version_is_the_one_that_the_tests_install(agent: str) -> None:
    kind = CODING_AGENTS[agent]
    packages = json.loads((KEPT.parents[1] / "real_agents/package.json").read_text("utf-8"))

    assert packages["dependencies"][kind.package] == kind.tested


@pytest.mark.parametrize(
    ("version", "newer"), [("1.2.3", False), ("1.2.4", True), ("1.10", True), ("1.2.3-beta.9", False), ("0.9", False)]
)
def test_versions_are_compared_by_their_numbers(version: str, newer: bool) -> None:
    assert is_newer(version, "1.2.3") is newer
