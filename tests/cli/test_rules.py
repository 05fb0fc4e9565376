"""`mam rules`: a person says once what agents may do, and no agent does."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from mam.cli.verbs.rules import SUBVERBS

if TYPE_CHECKING:
    from tests.cli.command import Mam, Ran


def test_rules_are_added_listed_and_tried(mam: Mam) -> None:
    assert "no rules" in mam("rules", "list").stderr
    assert mam("rules", "add", "deny", "--reason", "use a branch", "--", "git", "push").line == (
        "deny any agent any tool: git push …"
    )
    assert mam.on_terminal("rules", "add", "allow", "--agent", "codex", "--", "git").code == 0
    assert mam("rules", "add", "ask", "--first", "--", "git", "push", "--force").code == 0
    rows = [row.split("\t")[:5] for row in mam("rules", "list").out.splitlines()]
    assert rows == [
        ["1", "ask", "any", "any", "git push --force …"],
        ["2", "deny", "any", "any", "git push …"],
        ["3", "allow", "codex", "any", "git …"],
    ]
    (_, second, _) = mam("rules", "list", "--json").json
    assert (second["do"], second["argv"], second["reason"]) == ("deny", ["git", "push"], "use a branch")
    file = mam("config", "path").line
    decided = mam("rules", "test", "--", "cd x; git push").line
    assert decided == f"deny\trule 2: deny any agent any tool: git push …\t{file}"
    assert mam("rules", "test", "--", "git", "push", "--force").line.startswith("ask\trule 1")
    assert mam("rules", "test", "--", "git", "log").line == "ask\tno rule matches"
    assert mam("rules", "test", "--agent", "codex", "--", "git", "log").line.startswith("allow\trule 3")
    found = mam("rules", "test", "--agent", "codex", "--json", "--", "git log; x").json
    assert found == {"do": "ask", "rule": None, "file": None, "plain": False}


def test_bad_rules_change_nothing(mam: Mam) -> None:
    mam("rules", "add", "deny", "--", "git", "push")
    before = mam("rules", "list").out
    mam("rules", "add").failed(2, "allow, deny, ask")
    mam("rules", "add", "maybe", "--", "x").failed(2, "allow, deny, ask")
    mam("rules", "add", "allow").failed(2, "names a tool")
    mam("rules", "add", "allow", "--", "git;").failed(2, "no shell operator")
    mam("rules", "add", "allow", "--tool", "Edit").failed(1, "only at a terminal")
    mam("rules", "test").failed(2, "give a command")
    mam("config", "set", "rules", '[{do = "allow", tool = "x"}]').failed(2, "mam rules add")
    assert mam("rules", "list").out == before
    with open(mam("config", "path").line, "a", encoding="utf-8") as file:
        file.write('\n[[rules]]\ndo = "allow"\n')
    mam("rules", "list").failed(2, "rules: rule 2: a rule that allows names a tool")


@pytest.mark.parametrize("verb", SUBVERBS)
@pytest.mark.parametrize("variable", ["MAM_SOCKET", "MAM_STORE_MARK", "MAM_SESSION_DIR"])
def test_an_agent_cannot_use_them(mam: Mam, verb: str, variable: str) -> None:
    words = ["deny", "--", "x"] if verb == "add" else ["--", "x"] if verb == "test" else []
    mam.env[variable] = "/x"
    mam("rules", verb, *words).failed(1, "only a person")
    mam("config", "set", "on_idle", "stop").failed(1, "only a person")
    mam("trust").failed(1, "only a person")
    del mam.env[variable]
    assert mam("rules", "list").out == ""


def test_a_project_can_only_tighten(mam: Mam) -> None:
    """Its rules count after `mam trust`, where they are stricter than the user's, and never allow."""
    mam("init")
    mam.on_terminal("rules", "add", "allow", "--", "git")
    with open(mam.here / ".mam" / "config.toml", "w", encoding="utf-8") as file:
        file.write('[[rules]]\ndo = "allow"\ntool = "Bash"\n[[rules]]\ndo = "deny"\nargv = ["git", "push"]\n')
    os.chmod(mam.here / ".mam" / "config.toml", 0o600)
    untrusted = mam("rules", "test", "--", "git", "push")
    assert untrusted.out.startswith("allow\trule 1")
    assert "not trusted" in untrusted.stderr
    assert mam("trust", ".mam/config.toml").code == 0
    trusted = mam("rules", "test", "--", "git", "push")
    assert "only those in your own file count" in trusted.stderr
    assert trusted.out.startswith("deny\trule 1")
    assert mam("rules", "test", "--tool", "Bash", "--", "make").out.startswith("ask")
    assert mam("rules", "test", "--", "git", "log").out.startswith("allow\trule 2")


def test_rules_test_names_the_file_whose_rule_decides(mam: Mam) -> None:
    """The project asks about what the user denies, and denies what the user asks about."""
    mam("init")
    mam("rules", "add", "deny", "--", "git", "push")
    mam("rules", "add", "ask", "--", "npm")
    project = mam.here / ".mam" / "config.toml"
    project.write_text('[[rules]]\ndo = "ask"\nargv = ["git"]\n[[rules]]\ndo = "deny"\nargv = ["npm"]\n')
    project.chmod(0o600)
    assert mam("trust", ".mam/config.toml").code == 0
    user = mam("config", "path").line
    for command, do, number, file in (
        ("git push", "deny", 3, user), ("git pull", "ask", 1, str(project)), ("npm ci", "deny", 2, str(project)),
    ):  # fmt: skip
        assert mam("rules", "test", "--json", "--", command).json == {
            "do": do, "rule": number, "file": file, "plain": True,
        }  # fmt: skip
        assert mam("rules", "test", "--", command).line.endswith(f"\t{file}")


# -- a script that holds its job without a worker ----------------------------------------------------------------------


def asks(mam: Mam, job: str, command: str, *words: str, attempt: str = "1", token: str = "") -> Ran:
    """It asks for the permission to run a command."""
    given = ("--tool", "Bash", "--input", json.dumps({"command": command}))
    return mam("ask", "May I?", *given, *words, MAM_JOB_ID=job, MAM_ATTEMPT=attempt, MY_TOKEN=token)


def test_rules_decide_for_a_script_that_holds_its_job(mam: Mam) -> None:
    assert mam("rules", "add", "deny", "--reason", "use a branch", "--", "git", "push").code == 0
    assert mam.on_terminal("rules", "add", "allow", "--", "git").code == 0
    job = mam.register()
    assert mam("pick", "-s", "shell").line == job
    denied = asks(mam, job, "git push", "--wait", "--timeout", "0")
    assert (denied.code, denied.line, denied.stderr) == (0, "deny", "mam: use a branch\n")
    assert asks(mam, job, "git log --author hunter2hunter2", token="hunter2hunter2").line == "allow"
    assert mam("questions").out == ""
    lines = [json.loads(line) for line in mam("logs", job, "--json").out.splitlines()]
    first, second = [line for line in lines if line["event"] == "decided"]
    assert (first["answer"], first["rule"]) == ("deny", "deny any agent any tool: git push …")
    assert (second["answer"], second["what"]) == ("allow", "git log --author **************")
    assert asks(mam, job, "git log; x").line == f"{job}.1", "a person decides this"
    (question,) = mam("questions", "--json").json
    assert question["deadline"]["seconds"] == 3600, "as for every permission"
    asks(mam, job, "git push", attempt="2").failed(4, "ttempt 2")


def test_a_script_asks_again_what_is_open(mam: Mam) -> None:
    job = mam.register()
    mam("pick", "-s", "shell")
    again = ("ask", "Which?", "--job", job, "--attempt", "1")
    assert mam(*again).line == f"{job}.1"
    assert mam(*again).line == f"{job}.1"
    mam("answer", job, "sqlite")
    assert mam(*again).line == "sqlite"
    mam("release", job, "--attempt", "1")
    mam(*again).failed(4, "ttempt 1")
