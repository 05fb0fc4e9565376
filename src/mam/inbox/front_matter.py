"""What a prompt file says about its job before the prompt: YAML between two lines of three dashes.

The safe loader reads it, and only its plain pieces are looked at: no object is ever made from what a file says. A key
that nobody knows is an error that names key and line, so that a typo never runs with the wrong rights.
"""

from __future__ import annotations

from mam.clock import SystemClock
from mam.errors import BadInput
from mam.frozen import Frozen
from mam.jobs.record import CHOICES
from mam.times import when, whole_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from yaml.nodes import Node

FENCE = "---"
SIZE_LIMIT = 64 << 10
_YES, _NO = ("true", "yes", "on"), ("false", "no", "off")


class Wishes(Frozen):
    """What the file asks for; None where it says nothing."""

    agent: str | None = None
    label: str | None = None
    priority: int | None = None
    artifacts: list[str] | None = None
    timeout: int | None = None
    idle_timeout: int | None = None
    retries: int | None = None
    after: list[str] | None = None
    at: int | None = None
    """Milliseconds since 1970."""
    permissions: str | None = None
    worktree: bool | None = None
    push: bool | None = None
    pull_request: bool | None = None


def parse(text: str) -> tuple[Wishes, str]:
    """What a file asks for, and its prompt. BadInput names the line."""
    text = text.removeprefix("\ufeff")
    first, newline, rest = text.partition("\n")
    if first.rstrip() != FENCE or not newline:
        return Wishes(), text
    lines = rest.split("\n")
    for number, line in enumerate(lines):
        if line.rstrip() in (FENCE, "..."):
            head = "\n".join(lines[:number])
            if len(head) > SIZE_LIMIT:
                raise BadInput(why=f"the front matter has more than {SIZE_LIMIT:,} characters")
            return _wishes(head), "\n".join(lines[number + 1 :])
    raise BadInput(
        why="the front matter that begins in line 1 has no end: close it with a line ---, or put an empty line before"
        " the first --- if it is a part of the prompt"
    )


def _wishes(head: str) -> Wishes:
    import yaml

    try:
        root = yaml.compose(head, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 2}" if mark is not None else ""
        problem = getattr(error, "problem", None) or "it cannot be read"
        raise BadInput(why=f"the front matter is not YAML{where}: {problem}") from None
    except (RecursionError, ValueError) as error:
        raise BadInput(why=f"the front matter is not YAML: {type(error).__name__}") from None
    if root is None:
        return Wishes()
    if not isinstance(root, yaml.MappingNode):
        raise BadInput(why="the front matter is not a list of `key: value` lines")
    found: dict[str, Any] = {}
    for key, value in root.value:
        name, line = _text(key, "a key"), key.start_mark.line + 2
        if name not in _READERS:
            raise BadInput(why=f"line {line}: {name[:80]!a} is not a key of the front matter{_hint(name)}")
        if name in found:
            raise BadInput(why=f"line {line}: {name} is there twice")
        try:
            found[name] = _READERS[name](value)
        except BadInput as bad:
            raise BadInput(why=f"line {value.start_mark.line + 2}: {name}: {bad}") from None
    return Wishes(**found)


def _hint(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, list(_READERS), n=1, cutoff=0.6)
    return f" (did you mean {near[0]}?)" if near else f"; there are {', '.join(_READERS)}"


# -- values ----------------------------------------------------------------------------------------------------------


def _text(node: Node, what: str = "it") -> str:
    import yaml

    if not isinstance(node, yaml.ScalarNode):
        raise BadInput(why=f"{what} must be one value, not a {_kind(node)}")
    if not node.value.strip():
        raise BadInput(why=f"{what} has no value")
    return str(node.value)


def _kind(node: Node) -> str:
    return "list" if type(node).__name__ == "SequenceNode" else "table"


def _texts(node: Node) -> list[str]:
    """One or several."""
    import yaml

    if isinstance(node, yaml.SequenceNode):
        return [_text(item) for item in node.value]
    return [_text(node)]


def _number(node: Node) -> int:
    text = _text(node)
    try:
        return int(text)
    except ValueError:
        raise BadInput(why=f"{text[:40]!a} is not a whole number") from None


def _switch(node: Node) -> bool:
    text = _text(node).lower()
    if text not in _YES + _NO:
        raise BadInput(why=f"{text[:40]!a} is neither true nor false")
    return text in _YES


def _seconds(node: Node) -> int:
    return whole_seconds(_text(node))


def _moment(node: Node) -> int:
    """From when the file is read: `+2h` counts from then."""
    return when(_text(node), SystemClock().now().wall_ms, "at")


def _permissions(node: Node) -> str:
    text, choices = _text(node), CHOICES["permissions"]
    if text not in choices:
        raise BadInput(why=f"{text[:40]!a} is none of {', '.join(choices)}")
    return text


_READERS: dict[str, Callable[[Node], object]] = {
    "agent": _text, "label": _text, "priority": _number, "artifacts": _texts, "timeout": _seconds,
    "idle_timeout": _seconds, "retries": _number, "after": _texts, "at": _moment, "permissions": _permissions,
    "worktree": _switch, "push": _switch, "pull_request": _switch,
}  # fmt: skip
KEYS = tuple(_READERS)
