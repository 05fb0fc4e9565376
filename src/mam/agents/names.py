"""Names and ids of agents. `gpu`, `MAM-gpu` and `HOUMAO-gpu` are the same name."""

from __future__ import annotations

import hashlib

from mam.agents.errors import BadName
from mam.jobs.input_rules import SESSION_ID_LIMIT, is_session_id

PREFIXES = ("MAM", "HOUMAO")
LENGTH_LIMIT = SESSION_ID_LIMIT


def bare_name(text: str) -> str:
    """The name without its prefix. Raises BadName for an invalid one."""
    for prefix in PREFIXES:
        if text.startswith(f"{prefix}-"):
            return _validate(text[len(prefix) + 1 :], text)
    return _validate(text, text)


def canonical_name(text: str, prefix: str = PREFIXES[0]) -> str:
    """The form of a name in records. The prefix is not part of the identity."""
    if prefix not in (*PREFIXES, ""):
        raise BadName(name=repr(prefix[:80]), why=f"the prefix must be {' or '.join(PREFIXES)}, or nothing")
    return f"{prefix}-{bare_name(text)}" if prefix else bare_name(text)


def same_name(one: str, other: str) -> bool:
    return bare_name(one) == bare_name(other)


def is_name(text: str) -> bool:
    try:
        bare_name(text)
    except BadName:
        return False
    return True


def default_agent_id(name: str) -> str:
    """The id of an agent that was published without one. A name of the other system has the id of that system."""
    bare = bare_name(name)
    if name.startswith(f"{PREFIXES[1]}-"):
        return _id_elsewhere(f"{PREFIXES[1]}-{bare}")
    return hashlib.sha256(f"{PREFIXES[0]}-{bare}".encode()).hexdigest()[:32]


def default_agent_ids(name: str) -> tuple[str, ...]:
    """Every id that mam or the other system derives from the forms of this name."""
    bare = bare_name(name)
    return default_agent_id(bare), default_agent_id(f"{PREFIXES[1]}-{bare}"), _id_elsewhere(bare)


def _id_elsewhere(name: str) -> str:
    return hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()


def is_agent_id(text: str) -> bool:
    """`^[A-Za-z0-9][A-Za-z0-9_-]*$`, which is safe in any path. Generations follow the same rule."""
    return is_session_id(text)


def check_agent_id(text: str, what: str = "id") -> str:
    if not is_agent_id(text):
        raise BadName(name=repr(text[:80]), why=f"an {what} has letters, digits, _ and -, at most {LENGTH_LIMIT}")
    return text


def _validate(name: str, given: str) -> str:
    if not is_agent_id(name):
        raise BadName(name=repr(given[:80]), why=f"a name has letters, digits, _ and -, at most {LENGTH_LIMIT}")
    word = next((prefix for prefix in PREFIXES if name.upper().startswith(prefix)), None)
    if word is not None and not name[len(word) : len(word) + 1].isalnum():
        why = f"{word} is the prefix of names; write {word}- once"
        raise BadName(name=repr(given[:80]), why=why)
    return name
