"""The front matter of a prompt file: YAML between two lines of three dashes.

mam's own is a block `mam:`, or nothing but keys that mam knows. Any other head belongs to another tool and is part of
the prompt, unchanged. shallow_yaml.py reads strings and lists of strings and never creates objects. If such a head
also has keys of mam's, `remark` says so: it may be a typo, and nothing of the head was obeyed.
"""

from __future__ import annotations

from mam.errors import BadInput
from mam.inbox.shallow_yaml import SIZE_LIMIT, entries, top_level_keys
from mam.jobs.record import CHOICES
from mam.util.clock import SystemClock
from mam.util.frozen import Frozen
from mam.util.human_time import parse_when, parse_whole_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Value = str | list[str]

FENCE = "---"
BLOCK = "mam"
_YES, _NO = ("true", "yes", "on"), ("false", "no", "off")


class FrontMatter(Frozen):
    """The requested options; None where the file has no value."""

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
    remark: str | None = None
    """That keys of mam's were not read, because the head belongs to another tool, and why."""


def parse(text: str) -> tuple[FrontMatter, str]:
    """The front matter and the prompt of a file. BadInput names the line."""
    text = text.removeprefix("\ufeff")
    split = _split(text)
    if split is None:
        return FrontMatter(), text
    head, body = split
    found = top_level_keys(head)
    if BLOCK in found.keys:
        return _parse_keys(head, BLOCK), text if set(found.keys) - {BLOCK} else body
    if not found.keys:
        return FrontMatter(), body if found.is_empty else text
    if set(found.keys) <= _READERS.keys():
        return _parse_keys(head), body
    return FrontMatter(remark=_remark(found.keys)), text


def _split(text: str) -> tuple[str, str] | None:
    """The head and what follows it; None if the text does not begin with a closed one."""
    first, newline, rest = text.partition("\n")
    if first.rstrip() != FENCE or not newline:
        return None
    end = 0
    for line in rest[: SIZE_LIMIT + len(FENCE) + 1].split("\n"):
        behind = end + len(line)
        if line.rstrip() in (FENCE, "...") and rest[behind : behind + 1] in ("", "\n"):
            return rest[:end].removesuffix("\n"), rest[behind + 1 :]
        end = behind + 1
    return None


def _remark(keys: dict[str, int]) -> str | None:
    """What a person should know about a head with keys of mam's and others: one of these may be a typo."""
    known = [name for name in keys if name in _READERS]
    if not known:
        return None
    from difflib import get_close_matches

    near = {name: get_close_matches(name, list(_READERS), n=1, cutoff=0.8) for name in keys if name not in _READERS}
    other = max(near, key=lambda name: len(near[name]))
    hint = f" (did you mean {near[other][0]}?)" if near[other] else ""
    line = f"line {keys[other]}: {other[:80]!a} is not a key of mam's front matter{hint}"
    return f"{line}, so the head is part of the prompt, and mam did not read {', '.join(known)}"


def _parse_keys(head: str, block: str | None = None) -> FrontMatter:
    found: dict[str, Any] = {}

    def check_key(name: str, line: int) -> None:
        if name not in _READERS:
            raise BadInput(why=f"line {line}: {name[:80]!a} is not a key of the front matter{_hint(name)}")
        if name in found:
            raise BadInput(why=f"line {line}: {name} appears twice")

    for entry in entries(head, check_key, block):
        try:
            found[entry.key] = _READERS[entry.key](entry.value)
        except BadInput as bad:
            raise BadInput(why=f"line {entry.line}: {entry.key}: {bad}") from None
    return FrontMatter(**found)


def _hint(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, list(_READERS), n=1, cutoff=0.6)
    return f" (did you mean {near[0]}?)" if near else f"; the keys are {', '.join(_READERS)}"


# -- values ----------------------------------------------------------------------------------------------------------


def _text(value: Value) -> str:
    if isinstance(value, list):
        raise BadInput(why="it must be one value, not a list")
    return value


def _texts(value: Value) -> list[str]:
    """One string or several."""
    return value if isinstance(value, list) else [value]


def _number(value: Value) -> int:
    text = _text(value)
    try:
        return int(text)
    except ValueError:
        raise BadInput(why=f"{text[:40]!a} is not a whole number") from None


def _switch(value: Value) -> bool:
    text = _text(value).lower()
    if text not in _YES + _NO:
        raise BadInput(why=f"{text[:40]!a} is neither true nor false")
    return text in _YES


def _seconds(value: Value) -> int:
    return parse_whole_seconds(_text(value))


def _moment(value: Value) -> int:
    """Relative times such as `+2h` count from when the file is read."""
    return parse_when(_text(value), SystemClock().now().wall_ms, "at")


def _permissions(value: Value) -> str:
    text, choices = _text(value), CHOICES["permissions"]
    if text not in choices:
        raise BadInput(why=f"{text[:40]!a} is none of {', '.join(choices)}")
    return text


_READERS: dict[str, Callable[[Value], object]] = {
    "agent": _text, "label": _text, "priority": _number, "artifacts": _texts, "timeout": _seconds,
    "idle_timeout": _seconds, "retries": _number, "after": _texts, "at": _moment, "permissions": _permissions,
    "worktree": _switch, "push": _switch, "pull_request": _switch,
}  # fmt: skip
KEYS = tuple(_READERS)
