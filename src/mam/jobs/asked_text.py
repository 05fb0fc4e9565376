"""What an agent asks for, as lines that a person can read: the exact command, the exact change, or the exact input.

Nothing is left out and nothing is cut. The texts come from agents, so every page that shows them has to escape them.
"""

from __future__ import annotations

import json

from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.jobs.question import Question
    from mam.jobs.record import Json

PLAIN, TITLE, REMOVED, ADDED = " ", ":", "-", "+"

_COMMANDS = ("command", "cmd")
_PLACES = ("file_path", "filePath", "notebook_path", "path")
_BEFORE = ("old_string", "oldString", "oldText")
_AFTER = ("new_string", "newString", "newText", "new_source", "content")
_PATCHES = ("diff", "patch")


class AskedLine(Frozen):
    mark: str
    """PLAIN, TITLE for words of mam, REMOVED or ADDED for the lines of a change."""
    text: str


def asked_lines(question: Question) -> list[AskedLine]:
    """The question, then the tool with its input."""
    lines = _plain(question.text)
    if question.tool is not None:
        lines.append(AskedLine(mark=TITLE, text=f"{question.tool}:"))
        lines += _input(question.input or {})
    return lines


def short_text(question: Question) -> str:
    """For a list: the tool and the first line of what it would do, or the question. An ellipsis says that there is
    more."""
    if question.tool is None:
        return question.text
    shown = [line.text for line in _input(question.input or {}) if line.text.strip()]
    return f"{question.tool}: {next(iter(shown), '')}{' …' if len(shown) > 1 else ''}"


def _input(given: Json) -> list[AskedLine]:
    rest = dict(given)
    lines: list[AskedLine] = []
    for name in _taken(rest, _COMMANDS):
        lines += _plain(_as_command(rest.pop(name)))
    for name in _taken(rest, _PLACES):
        lines.append(AskedLine(mark=PLAIN, text=str(rest.pop(name))))
    for names, mark in ((_BEFORE, REMOVED), (_AFTER, ADDED), (_PATCHES, PLAIN)):
        for name in _taken(rest, names):
            lines += [AskedLine(mark=mark, text=line) for line in str(rest.pop(name)).split("\n")]
    for name, value in rest.items():
        lines += _plain(f"{name}: {value if isinstance(value, str) else _as_json(value)}")
    return lines


def _taken(given: Json, names: tuple[str, ...]) -> Iterator[str]:
    """Those that are there, as texts or as the words of a command."""
    for name in names:
        value = given.get(name)
        if isinstance(value, str) or (name in _COMMANDS and _is_words(value)):
            yield name


def _is_words(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(word, str) for word in value)


def _as_command(command: str | list[str]) -> str:
    import shlex

    return command if isinstance(command, str) else shlex.join(command)


def _as_json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def _plain(text: str) -> list[AskedLine]:
    return [AskedLine(mark=PLAIN, text=line) for line in text.split("\n")]
