"""A worker obeys the rules as they are now, and nothing that happens to their files allows anything."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from mam.config.rule_files import RuleFiles
from tests.waiting import await_that
from tests.work.commands import mam
from tests.work.test_config_project import inside, project, user
from tests.work.worker_commands import Working, ended, made

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.command import Mam

__all__ = ["inside", "mam"]

ALLOW_GIT = '[[rules]]\ndo = "allow"\nargv = ["git"]\n'
NO_PUSH = '[[rules]]\ndo = "deny"\nargv = ["git", "push"]\n'


class Watched:
    """The rules of a worker that runs here, and what it says about them."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.files = RuleFiles(self.said.append)
        self.files.now()

    def now(self, workdir: Path | None = None) -> list[str]:
        files = self.files.now(str(workdir) if workdir else None)
        return [f"{rule.do} {' '.join(rule.argv)}" for rules in files for rule in rules]


def test_a_rule_counts_as_soon_as_it_is_written(inside: Mam) -> None:
    rules = Watched()
    assert rules.now() == []
    user(inside, ALLOW_GIT)
    assert rules.now() == ["allow git"]
    user(inside, NO_PUSH + ALLOW_GIT)
    assert rules.now() == ["deny git push", "allow git"]
    user(inside, "")
    assert rules.now() == []
    assert rules.said == []


@pytest.mark.parametrize("broken", ["[[rules", '[[rules]]\ndo = "allow"\n', "nonsense = 1\n", "\xff" * 10, None, "dir"])
def test_while_the_file_is_broken_nothing_is_allowed(inside: Mam, broken: str | None) -> None:
    file = user(inside, NO_PUSH + ALLOW_GIT)
    rules = Watched()
    assert rules.now() == ["deny git push", "allow git"]
    file.unlink()
    if broken == "dir":
        file.mkdir()
    elif broken is not None:
        file.write_text(broken, encoding="latin-1")
    for _ in range(2):
        assert rules.now() == ["deny git push"], "what was denied stays denied"
    (said,) = rules.said
    assert str(file) in said
    assert "no rule allows anything" in said
    if broken == "dir":
        file.rmdir()
    user(inside, NO_PUSH + ALLOW_GIT)
    assert rules.now() == ["deny git push", "allow git"]
    assert rules.said[1:] == ["the rules can be read again"]


def test_an_edit_within_one_tick_of_the_clock_is_seen(inside: Mam) -> None:
    file = user(inside, ALLOW_GIT)
    rules, times = Watched(), os.stat(file)
    with open(file, "r+") as opened:
        opened.write(ALLOW_GIT.replace('"git"', '"cat"'))
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert rules.now() == ["allow cat"]


def test_an_agent_cannot_take_a_rule_of_the_project_away(inside: Mam) -> None:
    """It may write in the project's directory. Only another version that the user trusts replaces the rules."""
    user(inside, ALLOW_GIT)
    file = project(inside, NO_PUSH + ALLOW_GIT)
    os.chmod(file, 0o600)
    assert inside("trust", ".mam/config.toml").code == 0
    rules = Watched()
    assert rules.now() == ["deny git push", "allow git"], "a project's file allows nothing"
    for text in ("", ALLOW_GIT, "[[rules", NO_PUSH.replace("push", "pull")):
        file.write_text(text)
        assert rules.now() == ["deny git push", "allow git"]
    file.unlink()
    assert rules.now() == ["deny git push", "allow git"]
    file.symlink_to("/etc/passwd")
    assert rules.now() == ["deny git push", "allow git"]
    file.unlink()
    project(inside, NO_PUSH.replace("push", "pull"))
    os.chmod(file, 0o600)
    assert inside("trust", ".mam/config.toml").code == 0
    assert rules.now() == ["deny git pull", "allow git"]


def test_a_file_that_an_agent_may_write_allows_it_nothing(inside: Mam, tmp_path: Path) -> None:
    """A link into the project, or a job in the home directory."""
    user(inside, NO_PUSH + ALLOW_GIT)
    rules = Watched()
    everything, without = ["deny git push", "allow git"], ["deny git push"]
    assert rules.now(inside.here) == everything
    assert rules.now(inside.home) == without
    assert rules.now(tmp_path) == without
    (tmp_path / "link").symlink_to(inside.home)
    assert rules.now(tmp_path / "link") == without
    file = inside.home / "config/mam/config.toml"
    file.rename(inside.here / "dotfile.toml")
    file.symlink_to(inside.here / "dotfile.toml")
    assert rules.now(inside.here) == without
    assert rules.now(inside.here / "part") == everything
    assert rules.now(inside.home) == everything, "the file is not there"


def test_the_cache_of_settings_allows_nothing(inside: Mam) -> None:
    user(inside, "on_idle = 'stop'\n")
    assert inside("rules", "list").code == 0
    (cached,) = (inside.home / "cache/mam").glob("config.json")
    forged = json.loads(cached.read_text())
    forged["values"]["rules"] = [{"do": "allow", "argv": ["git"]}]
    cached.write_text(json.dumps(forged))
    assert Watched().now() == []


# -- with a worker -----------------------------------------------------------------------------------------------------

ROBOT = """#!/bin/sh
ask() { mam ask "It runs git." --tool Bash --input "{\\"command\\": \\"$1\\"}" --wait 2>&1; }
{ ask "git push"; until test -e next; do sleep 0.1; done; ask "git push"; ask "git log"; } >answers
"""


@pytest.fixture
def robot(tmp_path: Path) -> Mam:
    mam = made(tmp_path, "sqlite")
    program = tmp_path / "robot"
    program.write_text(ROBOT)
    program.chmod(0o700)
    mam("config", "set", "commands.robot.argv", json.dumps([str(program)]))
    return mam


def test_a_running_worker_obeys_a_rule_that_is_added(robot: Mam) -> None:
    """At the next question of the same job, and for the next job; no one starts the worker again."""
    first = robot.register("x", "--agent", "robot")
    with Working(robot, "-s", "robot"):
        await_that(lambda: first in robot("questions", "--json").out)
        assert robot("rules", "add", "deny", "--reason", "use a branch", "--", "git", "push").code == 0
        assert robot.on_terminal("rules", "add", "allow", "--", "git").code == 0
        assert len(robot("questions", "--json").json) == 1, "what is asked already waits for the person"
        assert robot("answer", first, "allow").code == 0
        (robot.here / "next").touch()
        ended(robot, first)
        answers = (robot.here / "answers").read_text().splitlines()
        assert answers == ["allow", "mam: use a branch", "deny", "allow"]
        ended(robot, robot.register("y", "--agent", "robot"))
        answers = (robot.here / "answers").read_text().splitlines()
        assert answers == ["mam: use a branch", "deny", "mam: use a branch", "deny", "allow"]
