"""Rules: the first match of each file counts, the strictest of these decides, and nothing that a shell could read
otherwise is allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mam.errors import BadInput
from mam.jobs.question import PERMISSION, QUESTION, Draft
from mam.jobs.rules import Rule, always_allowed, deciding_rule, first_match, plain_words, rule_from_fields, sameness
from tests.unit.jobs import running

if TYPE_CHECKING:
    from mam.jobs.record import Job

STATUS = Rule(do="allow", tool="Bash", argv=("git", "status"))
GIT = Rule(do="allow", argv=("git",))
NO_PUSH = Rule(do="deny", argv=("git", "push"), reason="use a branch")


def bash(command: object, tool: str = "Bash") -> Draft:
    return Draft(kind=PERMISSION, text="x", tool=tool, input={"command": command})


def chosen(rules: list[Rule], draft: Draft, agent: str = "claude-code") -> str | None:
    found = first_match(rules, agent, draft)
    return None if found is None else found.do


def test_the_first_rule_that_matches_decides() -> None:
    assert chosen([NO_PUSH, GIT], bash("git push origin")) == "deny"
    assert chosen([GIT, NO_PUSH], bash("git push origin")) == "allow"
    assert chosen([NO_PUSH, GIT], bash("git log")) == "allow"
    assert chosen([NO_PUSH, GIT], bash("make")) is None


@pytest.mark.parametrize(
    ("project", "user", "decides"),
    [
        ("deny", "ask", "project"), ("deny", "allow", "project"), ("deny", None, "project"),
        ("ask", "deny", "user"), ("ask", "allow", "project"), ("ask", None, "project"),
        (None, "deny", "user"), (None, "ask", "user"), (None, "allow", "user"),
        ("deny", "deny", "project"), ("ask", "ask", "project"), (None, None, None),
    ],
)  # fmt: skip
def test_the_strictest_of_the_files_decides(project: str | None, user: str | None, decides: str | None) -> None:
    files = [
        [Rule(do=do, argv=("git",), reason=name)] if do else [] for name, do in (("project", project), ("user", user))
    ]
    found = deciding_rule(files, "claude-code", bash("git push"))
    assert (None if found is None else found.reason) == decides


def test_only_the_first_match_of_each_file_counts() -> None:
    """A user allows a part of what a later rule of the same file denies; the project cannot bring that one in."""
    push_only = [Rule(do="allow", argv=("git", "push")), Rule(do="deny", argv=("git",))]
    elsewhere = [Rule(do="ask", argv=("npm",)), Rule(do="deny", agent="codex")]
    assert deciding_rule([elsewhere, push_only], "claude-code", bash("git push")) is push_only[0]
    assert deciding_rule([elsewhere, push_only], "codex", bash("git push")) is elsewhere[1]


def test_a_rule_names_agent_tool_and_first_words() -> None:
    assert chosen([STATUS], bash("git status -s")) == "allow"
    assert chosen([STATUS], bash("git statusx")) is None
    assert chosen([STATUS], bash("git status", tool="Shell")) is None
    assert chosen([STATUS.replace(tool="command")], bash("git status", tool="shell")) == "allow"
    assert chosen([STATUS.replace(agent="codex")], bash("git status")) is None
    assert chosen([STATUS.replace(agent="codex")], bash("git status"), "codex") == "allow"
    edit = Draft(kind=PERMISSION, text="x", tool="Edit", input={"file_path": "/a", "new_string": "a\nb; $(c)"})
    assert chosen([Rule(do="allow", tool="Edit")], edit) == "allow"
    assert chosen([GIT], edit) is None
    assert chosen([Rule(do="allow", tool="command")], edit) is None


def test_only_permissions_have_rules() -> None:
    question = Draft(kind=QUESTION, text="git status?", tool="Bash", input={"command": "git status"})
    assert chosen([STATUS, Rule(do="deny")], question) is None


@pytest.mark.parametrize(
    "command",
    [
        "git status; rm -rf /", "git status && x", "git status || x", "git status | sh", "git status & x",
        "git status > ~/.bashrc", "git status < x", "git status $(x)", "git status `x`", "git status $HOME",
        "git status\nrm -rf /", "git status\rx", "git status ${x}", "git status {a,b}", "git status \\\n x",
        "git status '", 'git status "', "git status \x1b[2J", "git status \u202e", "git status \u2028x",
        "git status\0x", "(git status)", "git status !!", "git\u00a0status", "git status \u200b",
        ["git", "status", "a\nb"], ["bash", "-c", "git status; x"], ["bash", "-lc", "git status $(x)"],
        ["bash", "x", "git status"], [], ["git", 1], None, "", "   ", 5, {"git": "status"},
        ["bash", "--norc", "git status"], ["bash", "-ic", "git status"], ["bash", "-c", "git status", "x"],
        ["./bash", "-lc", "git status"], ["/tmp/bash", "-c", "git status"], ["x/../bin/sh", "-c", "git status"],
    ],
)  # fmt: skip
def test_what_a_shell_could_read_otherwise_is_not_allowed(command: object) -> None:
    every = [STATUS, GIT, Rule(do="allow", tool="Bash"), Rule(do="allow", tool="command")]
    draft = bash(command)
    assert chosen(every, draft) is None
    assert plain_words(draft.input) is None


@pytest.mark.parametrize(
    "command",
    [
        "sudo git status", "FOO=bar git status", "GIT_SSH_COMMAND=x git status", "env git status", "command git status",
        "/tmp/git status", "./git status", "../bin/git status", "~/git status", "git -c x=y status", "Git status",
        "g\u0456t status", "\uff47\uff49\uff54 status", "git\u0301 status", "'git status'", "gi t status", "git-status",
        "exec git status", "xargs git status", "bash -c 'git status'", "sh git status", "git status-x",
        ["sudo", "git", "status"], ["FOO=bar", "git", "status"], ["/tmp/git", "status"], ["git status"],
    ],
)  # fmt: skip
def test_only_these_very_words_are_allowed(command: object) -> None:
    assert chosen([STATUS, STATUS.replace(tool=None), STATUS.replace(tool="command")], bash(command)) is None


def test_an_input_with_two_commands_is_not_allowed() -> None:
    every = [GIT, Rule(do="allow", tool="Bash"), Rule(do="allow", tool="command")]
    draft = bash("git status").replace(input={"command": "git status", "cmd": "git push"})
    assert chosen(every, draft) is None
    assert chosen([NO_PUSH, *every], draft) == "deny"
    assert sameness("Bash", draft.input) is None


@pytest.mark.parametrize("command", ["git status -s", ["git", "status"], ["/bin/bash", "-lc", "git status"]])
def test_plain_commands_are_allowed(command: object) -> None:
    assert chosen([STATUS], bash(command)) == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "git push", "cd x && git push -f", "x; git push", "(git push)", "x | git push", "echo `git push`",
        "echo $(git push)", "x\ngit push", ["bash", "-c", "x; git push"], "git push > x 2>&1", "git push '",
        "FOO=bar git push", "A=1 B+=2 git push", "/usr/bin/git push", "sudo git push", "sudo -u root /usr/bin/git push",
        "env -i FOO=bar git push", "command git push", "nohup nice -n 5 git push &", "exec git push", "time git push",
        "if true; then git push; fi", "xargs -n 1 git push", "bash -c 'git push'", "sudo bash -lc \"cd x && git push\"",
        "eval 'git push'", "sh -c \"sh -c 'git push'\"", "g\\it push", "'git' \"push\"", ["sudo", "git", "push"],
        ["./bash", "-lc", "git push"], ["env", "x=y", "git", "push"], ["/opt/git", "push"],
    ],
)  # fmt: skip
def test_a_denial_also_finds_the_parts_of_a_line(command: object) -> None:
    assert chosen([NO_PUSH, GIT], bash(command)) == "deny"
    assert chosen([NO_PUSH.replace(do="ask"), GIT], bash(command)) == "ask"


@pytest.mark.parametrize(
    "fields",
    [
        {}, [], "allow", {"do": "maybe"}, {"do": "allow"}, {"do": "allow", "agent": "x"}, {"do": "deny", "x": 1},
        {"do": "deny", "argv": "git"}, {"do": "deny", "argv": [""]}, {"do": "deny", "argv": [1]},
        {"do": "deny", "tool": ""}, {"do": "deny", "agent": 1}, {"do": "allow", "argv": ["git;"]},
        {"do": "allow", "argv": ["a\nb"]}, {"do": "deny", "argv": ["x"] * 101},
    ],
)  # fmt: skip
def test_bad_rules_are_refused(fields: Any) -> None:
    with pytest.raises(BadInput):
        rule_from_fields(fields)


def test_a_rule_goes_through_json() -> None:
    rule = rule_from_fields({"do": "deny", "agent": "codex", "argv": ["git", "push"], "reason": "no"})
    assert rule_from_fields(rule.to_json()) == rule
    assert str(rule) == "deny codex any tool: git push …"
    assert rule_from_fields({"do": "ask"}) == Rule(do="ask")


def answered_always(tool: str, given: dict[str, object]) -> Job:
    question = {"number": 1, "attempt": 1, "kind": "permission", "text": "x", "digest": "0" * 64, "tool": tool}
    return running().replace(
        questions=[
            {**question, "asked_at": "2026-01-01T00:00:00Z", "state": "answered", "answer": "always", "input": given}
        ]
    )


@pytest.mark.parametrize(
    ("tool", "before", "now", "covers"),
    [
        ("Bash", {"command": "make test"}, {"command": "make  'test'", "description": "x"}, True),
        ("Bash", {"command": "make test"}, {"command": "make test2"}, False),
        ("Bash", {"command": "make test"}, {"command": "make test; x"}, False),
        ("Bash", {"command": "make; x"}, {"command": "make; x"}, False),
        ("Edit", {"file_path": "/a", "old": "1"}, {"file_path": "/a", "old": "2"}, True),
        ("Edit", {"file_path": "/a"}, {"file_path": "/b"}, False),
        ("Look", {"query": "a"}, {"query": "a"}, True),
        ("Look", {"query": "a"}, {"query": "b"}, False),
        ("mcp__db__run", {"path": "a.db", "sql": "select"}, {"path": "a.db", "sql": "drop"}, False),
        ("mcp__db__run", {"path": "a.db", "sql": "select"}, {"path": "a.db", "sql": "select"}, True),
        ("Bash", {"command": "make"}, {"command": "make", "dangerouslyDisableSandbox": True}, False),
        ("Bash", {"command": ["make"]}, {"cmd": "make"}, True),
        ("Bash", {"command": None, "path": "a"}, {"command": None, "path": "a"}, False),
    ],
)
def test_always_covers_the_same_again(tool: str, before: Any, now: Any, covers: bool) -> None:
    job = answered_always(tool, before)
    found = always_allowed([running(), job], Draft(kind=PERMISSION, text="y", tool=tool, input=now))
    assert (found is not None) is covers
    assert always_allowed([job], Draft(kind=PERMISSION, text="y", tool="Other", input=now)) is None
    assert always_allowed([running()], Draft(kind=PERMISSION, text="y", tool=tool, input=now)) is None


def test_a_tool_without_input_is_never_the_same() -> None:
    assert sameness("Bash", None) is None
    assert sameness(None, {"command": "x"}) is None
