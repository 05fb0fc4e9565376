"""What an agent asks, as the draft of a question; and a decision, as words for the agent. Pure.

The input of a tool is shown as it is. Only a text that no question can hold is shortened, and says so with the digest
of the whole.
"""

from __future__ import annotations

import hashlib
import json
import shlex

from mam.jobs.question import CHOICES_LIMIT, PERMISSION, QUESTION, RULE, Draft
from mam.jobs.rules import script_for_shell
from mam.util.notices import storable_text
from mam.work.asking.port import Decision

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from mam.jobs.record import Json

INPUT_LIMIT = 160 * 1024
"""Bytes of a tool's input in a question, which has room for a little more."""
_SHOWN = 8 * 1024
_MOST_TEXTS = 16
REFUSED_BY_PERSON = "A person refused this"
REFUSED_BY_RULE = "A rule of the user refuses this"
GO_ON = "Continue without it, or find another way that is allowed."


def permission_draft(agent: str, does: str, tool: str, given: Json) -> Draft:
    """`does` completes the sentence `AGENT wants to …`."""
    return Draft(kind=PERMISSION, text=f"{agent} wants to {does}.", tool=_line(tool) or "tool", input=fitting(given))


def question_draft(text: object, choices: Iterable[object] = ()) -> Draft:
    """Choices that look alike, or too many, become part of the text."""
    known = [choice for choice in (_line(one) for one in choices) if choice]
    asked = storable_text(text if isinstance(text, str) else "").strip() or "The agent asks, without a text."
    if len(known) > CHOICES_LIMIT or len(set(known)) != len(known):
        return Draft(kind=QUESTION, text="\n".join([asked, *(f"- {one}" for one in known)])[:_SHOWN])
    return Draft(kind=QUESTION, text=asked[:INPUT_LIMIT], choices=tuple(known))


def refusal(decision: Decision) -> str:
    """What the model reads instead of the tool's result."""
    if decision.is_undecided:
        return decision.message
    who = REFUSED_BY_RULE if decision.decided == RULE else REFUSED_BY_PERSON
    return f"{who}: {decision.reason}" if decision.reason else f"{who}. {GO_ON}"


def script_of(command: object) -> str:
    """The command without the shell that the agent starts for it; a list of words as one line."""
    words = command if isinstance(command, list) else _split(command)
    script = script_for_shell(words)
    if script is not None:
        return script
    return command if isinstance(command, str) else shlex.join(map(str, words))


def _split(command: object) -> list[Any]:
    try:
        return shlex.split(command) if isinstance(command, str) else []
    except ValueError:
        return []


def fitting(given: Json) -> Json:
    """The input, of a size and in characters that a question can hold."""
    given = _storable(given)
    if _size(given) <= INPUT_LIMIT:
        return given
    for _ in range(_MOST_TEXTS):
        given = _shortened(given, _longest(given))
        if _size(given) <= INPUT_LIMIT:
            return given
    # Rules look at the command, so it must not get lost among the rest.
    command = given.get("command", given.get("cmd"))
    named = {} if command is None else {"command": _within_limit(command if isinstance(command, str) else str(command))}
    return {**named, "input": _cut(json.dumps(given))}


def _within_limit(text: str) -> str:
    return text if len(text) <= _SHOWN else _cut(text)


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, dict):
        return {storable_text(str(name)): _storable(item) for name, item in value.items()}
    return [_storable(item) for item in value] if isinstance(value, list) else value


def _longest(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return max(map(_longest, items), default=0)


def _shortened(value: Any, length: int) -> Any:
    """With each text of this length cut."""
    if isinstance(value, str):
        return _cut(value) if len(value) >= max(length, _SHOWN) else value
    if isinstance(value, dict):
        return {name: _shortened(item, length) for name, item in value.items()}
    return [_shortened(item, length) for item in value] if isinstance(value, list) else value


def _cut(text: str) -> str:
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
    half = _SHOWN // 2 - 128
    left_out = f"[… {len(text) - 2 * half:,} characters are left out here; SHA-256 of the whole text: {digest} …]"
    return f"{text[:half]}\n{left_out}\n{text[-half:]}"


def _size(value: Json) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode(errors="surrogatepass"))


def _line(text: object) -> str:
    return " ".join(storable_text(text).split())[:200] if isinstance(text, str) else ""
