"""Rules that answer a permission before a person is asked. In each file of settings the first that matches counts, and
the strictest of these decides. Pure.

A rule names an agent, a tool and the first words of a command; what it does not name matches anything. `allow` is
strict: it matches a command only if a shell would run exactly its words. `deny` and `ask` also look at each part of a
command line, so that `cd x && git push`, `sudo git push` and `sh -c "git push"` meet a rule about `git push`.
"""

from __future__ import annotations

import re

from mam.errors import BadInput
from mam.jobs.question import ALLOW, ALWAYS, DENY, PERMISSION, questions_of
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mam.jobs.question import Draft, Question
    from mam.jobs.record import Job, Json

ASK = "ask"
ACTIONS = (ALLOW, DENY, ASK)
_STRICTEST_FIRST = (DENY, ASK, ALLOW)

COMMAND = "command"
"""As the tool of a rule: every tool that runs a command. Agents have different names for theirs."""

WORDS_LIMIT = 100
REASON_LIMIT = 1000
_FIELDS = ("do", "agent", "tool", "argv", "reason")
_OPERATORS = re.compile(r"[;&|<>()$`\n\r\\{}!]")
"""Whatever could make a shell run something else than the words of the line; also inside quotes, to be safe."""
_SETS_VARIABLE = re.compile(r"[A-Za-z_]\w*\+?=")
_PARTS = re.compile(r"&&|\|\||[;&|\n\r()`{}]|\$\(")
_SHELLS = ("sh", "bash", "zsh", "dash", "ksh")
_SHELL_PLACES = ("", "/bin/", "/usr/bin/", "/usr/local/bin/", "/opt/homebrew/bin/")
"""Where a shell of this name is the shell. An agent can write another program of the name elsewhere."""
_WRAPPERS = (
    "sudo", "doas", "env", "command", "builtin", "exec", "eval", "nohup", "nice", "ionice", "time", "timeout", "setsid",
    "stdbuf", "xargs", "if", "then", "else", "do", "while", "until", "!",
)  # fmt: skip
"""Words that run the command after them."""
_DEPTH = 4
"""Shells within shells in which a denial still looks."""
_FOREIGN = "mcp__"
"""Begins the tools of MCP servers, whose inputs mean what the server wants."""
_PLACES = ("file_path", "filePath", "notebook_path", "path", "url")
"""The names under which tools say what they work on."""
_COMMANDS = ("command", "cmd")
_REMARKS = (*_COMMANDS, "description", "timeout")
"""What may differ between two uses of the same command, or is compared as words."""


class Rule(Frozen):
    do: str
    agent: str | None = None
    tool: str | None = None
    argv: tuple[str, ...] = ()
    reason: str | None = None
    """What the agent reads when it is denied."""

    def __str__(self) -> str:
        """For people: `allow claude-code Bash: git status …`."""
        import shlex

        named = " ".join([self.do, self.agent or "any agent", self.tool or "any tool"])
        return f"{named}: {shlex.join(self.argv)} …" if self.argv else named

    def to_json(self) -> Json:
        return {name: value for name, value in self.as_dict().items() if value not in (None, ())}


def rule_from_fields(fields: object) -> Rule:
    """A rule as a file of settings has it; BadInput for anything else."""
    if not isinstance(fields, dict) or not fields.keys() <= set(_FIELDS):
        raise BadInput(why=f"a rule is a table with {', '.join(_FIELDS)}")
    if fields.get("do") not in ACTIONS:
        raise BadInput(why=f"the do of a rule is one of {', '.join(ACTIONS)}")
    for name in ("agent", "tool", "reason"):
        value = fields.get(name)
        if value is not None and not (isinstance(value, str) and value.strip() and len(value) <= REASON_LIMIT):
            raise BadInput(why=f"the {name} of a rule is a text")
    argv = fields.get("argv", ())
    if not isinstance(argv, list | tuple) or not all(isinstance(word, str) and word for word in argv):
        raise BadInput(why='the argv of a rule is a list of words: ["git", "status"]')
    if len(argv) > WORDS_LIMIT:
        raise BadInput(why=f"the argv of a rule has at most {WORDS_LIMIT} words")
    rule = Rule(**{**fields, "argv": tuple(argv)})
    if rule.do == ALLOW and not (rule.tool or rule.argv):
        raise BadInput(why="a rule that allows names a tool, or the first words of a command")
    if rule.do == ALLOW and any(_OPERATORS.search(word) for word in rule.argv):
        raise BadInput(why="a rule that allows matches no shell operator, substitution or newline")
    return rule


def deciding_rule(files: Iterable[Iterable[Rule]], agent: str, draft: Draft) -> Rule | None:
    """The rule that decides about this permission, of those of each file; None if none does."""
    found = [rule for rules in files if (rule := first_match(rules, agent, draft)) is not None]
    return min(found, key=lambda rule: _STRICTEST_FIRST.index(rule.do), default=None)


def first_match(rules: Iterable[Rule], agent: str, draft: Draft) -> Rule | None:
    """The rule of one file that counts for this permission; None if none does. Only permissions have rules."""
    if draft.kind != PERMISSION:
        return None
    return next((rule for rule in rules if _matches(rule, agent, draft)), None)


def _matches(rule: Rule, agent: str, draft: Draft) -> bool:
    if rule.agent is not None and rule.agent != agent:
        return False
    has_command = draft.input is not None and not draft.input.keys().isdisjoint(_COMMANDS)
    if rule.tool is not None and not _is_tool(rule.tool, draft.tool, has_command=has_command):
        return False
    if rule.do == ALLOW:
        # A tool that runs commands is allowed by its plain commands only.
        words = plain_words(draft.input) if has_command else None
        return words is not None and _begins(words, rule.argv) if has_command or rule.argv else True
    return any(_begins(words, rule.argv) for words in _commands_in(draft.input)) if rule.argv else True


def _is_tool(named: str, tool: str | None, *, has_command: bool) -> bool:
    return named == tool or (named == COMMAND and has_command)


def _begins(words: Sequence[str], prefix: Sequence[str]) -> bool:
    return tuple(words[: len(prefix)]) == tuple(prefix)


# -- commands --------------------------------------------------------------------------------------------------------


def _command_of(given: Json | None) -> str | list[str] | None:
    """What a tool would run: a line for a shell, or the words of a program. None if it is not clear."""
    named = [] if given is None else [given[name] for name in _COMMANDS if name in given]
    command = named[0] if len(named) == 1 else None
    if isinstance(command, str):
        return command
    if not isinstance(command, list) or not command or not all(isinstance(word, str) for word in command):
        return None
    script = script_for_shell(command)
    return command if script is None else script


def script_for_shell(words: Sequence[object]) -> str | None:
    """The line that a shell gets from these words: `bash -lc LINE`. None for any other program."""
    if len(words) != 3 or words[1] not in ("-c", "-lc"):
        return None
    place, slash, name = str(words[0]).rpartition("/")
    return str(words[2]) if name in _SHELLS and place + slash in _SHELL_PLACES else None


def plain_words(given: Json | None) -> list[str] | None:
    """The words of a command without shell operators, substitutions, newlines and invisible characters; else None."""
    command = _command_of(given)
    line = command if isinstance(command, str) else None
    if line is not None:
        if _OPERATORS.search(line) or not line.replace("\t", " ").isprintable():
            return None
        return _split(line) or None
    if not isinstance(command, list) or command[0].rpartition("/")[2] in _SHELLS:
        return None
    return command if all(word.isprintable() for word in command) else None


def _split(line: str) -> list[str]:
    import shlex

    try:
        return shlex.split(line)
    except ValueError:  # an open quote
        return []


def _commands_in(given: Json | None) -> Iterator[Sequence[str]]:
    """Every command that the input seems to contain, as words, for rules that deny or ask. They may find too many."""
    for name in _COMMANDS:
        command = None if given is None else given.get(name)
        if isinstance(command, str):
            yield from _in_line(command)
        elif isinstance(command, list):
            yield from _in_words([str(word) for word in command])


def _in_line(line: str, depth: int = 0) -> Iterator[Sequence[str]]:
    for part in [line, *_PARTS.split(line)]:
        yield from _in_words(_split(part) or part.split(), depth)


def _in_words(words: Sequence[str], depth: int = 0) -> Iterator[Sequence[str]]:
    """The words themselves, without the directory of the program, and what they run: behind variables, behind `sudo`
    and the like, and in the line for a shell."""
    words = words[next((at for at, word in enumerate(words) if not _SETS_VARIABLE.match(word)), len(words)) :]
    if not words:
        return
    yield words
    program = words[0].rpartition("/")[2]
    yield [program, *words[1:]]
    if depth == _DEPTH:
        return
    if program in _WRAPPERS:
        for at in range(1, min(len(words), WORDS_LIMIT)):
            yield from _in_words(words[at:], _DEPTH)
    if program in (*_SHELLS, *_WRAPPERS):
        for word in words[1:]:
            yield from _in_line(word, depth + 1)


# -- always ----------------------------------------------------------------------------------------------------------


def always_allowed(jobs: Iterable[Job], draft: Draft) -> Question | None:
    """The question that a person answered with `always` for the same, in one of these jobs: the job and those that it
    continues. The same is the same plain command, or the same tool on the same file; otherwise the same input."""
    wanted = sameness(draft.tool, draft.input)
    if draft.kind != PERMISSION or wanted is None:
        return None
    answered = (one for job in jobs for one in questions_of(job) if one.answer == ALWAYS)
    return next((one for one in answered if sameness(one.tool, one.input) == wanted), None)


def sameness(tool: str | None, given: Json | None) -> tuple[object, ...] | None:
    """What two uses of a tool must share for `always`; None if `always` cannot cover it."""
    if tool is None or given is None:
        return None
    if not given.keys().isdisjoint(_COMMANDS):
        words = plain_words(given)
        more = {name: value for name, value in given.items() if name not in _REMARKS}
        return None if words is None else (tool, *words, _as_text(more))
    place = next((given[name] for name in _PLACES if isinstance(given.get(name), str)), None)
    if place is not None and not tool.startswith(_FOREIGN):
        return tool, "at", place
    return tool, "with", _as_text(given)


def _as_text(value: Json) -> str:
    import json

    return json.dumps(value, sort_keys=True)
