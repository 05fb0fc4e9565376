"""Checks the settings tables of the inbox: `[inbox]`, `[queue]` and `[repos]`."""

from __future__ import annotations

from mam.config.file import check_names
from mam.errors import BadConfig

MODES = ("multi-owner", "single-owner", "flat")
"""The meaning of the directories below the inbox: owner/repo/branch, repo/branch, or none."""

INBOX_KEYS: dict[str, tuple[type | tuple[type, ...], str]] = {
    "root": (str, "a text"), "mode": (str, "a text"), "owner": (str, "a text"), "owners": (list, "a list of users"),
    "agent": (str, "a text"), "label": (str, "a text"), "permissions": (str, "a text"),
    "settle_seconds": ((int, float), "a number"), "linger_seconds": ((int, float), "a number"),
    "push": (bool, "true or false"), "pull_request": (bool, "true or false"),
    "pull_request_command": (list, "a list of texts"),
}  # fmt: skip
QUEUE_KEYS: dict[str, tuple[type | tuple[type, ...], str]] = {
    "jobs_root": (str, "a text"), "failure_archive": (bool, "true or false"), "max_retries": (int, "a whole number"),
    "keep_days": (int, "a whole number"),
}  # fmt: skip
_MOST = {"settle_seconds": 3600, "linger_seconds": 86_400, "max_retries": 1000, "keep_days": 36_500}
_OWNER_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def check_inbox(table: dict[str, object], file: str) -> None:
    _check_kinds("inbox", table, INBOX_KEYS, file)
    if table.get("mode", "flat") not in MODES:
        raise BadConfig(file=file, problem=f"inbox: mode must be one of {', '.join(MODES)}")
    if table.get("permissions", "edit") not in ("ask", "edit", "full"):
        raise BadConfig(file=file, problem="inbox: permissions must be ask, edit or full")
    if not is_repository_word(table.get("owner", "x")):
        raise BadConfig(file=file, problem="inbox: owner must be a name of letters, digits, . _ and -")
    if not str(table.get("root", "/")).startswith(("/", "~")):
        raise BadConfig(file=file, problem="inbox: root must be an absolute path")
    for name in ("owners", "pull_request_command"):
        words = table.get(name, ["x"])
        if not isinstance(words, list) or not words or not all(isinstance(word, str) and word for word in words):
            raise BadConfig(file=file, problem=f"inbox: {name} must be a list of texts")
        if any("\0" in word for word in words):
            raise BadConfig(file=file, problem=f"inbox: {name} has a NUL character")


def check_queue(table: dict[str, object], file: str) -> None:
    _check_kinds("queue", table, QUEUE_KEYS, file)
    if not str(table.get("jobs_root", "/")).startswith(("/", "~")):
        raise BadConfig(file=file, problem="queue: jobs_root must be an absolute path")


def check_repos(table: dict[str, object], file: str) -> None:
    for name, address in table.items():
        owner, slash, repo = name.partition("/")
        if not (slash and is_repository_word(owner) and is_repository_word(repo)):
            raise BadConfig(file=file, problem=f'repos: {name[:80]!a} must be "owner/repo"')
        if not isinstance(address, str) or not address.strip() or not address.isprintable():
            raise BadConfig(file=file, problem=f"repos: the place of {name} must be a path or an address")
        # git reads `-x` as an option and runs `helper::…` as a program.
        if address.startswith("-") or "::" in address:
            raise BadConfig(file=file, problem=f"repos: the place of {name} is no address that mam gives to git")
        if not (address.startswith(("/", "~")) or ":" in address):
            raise BadConfig(file=file, problem=f"repos: the place of {name} must be an absolute path or an address")


def is_repository_word(text: object) -> bool:
    """Whether the text is a valid name of an owner or a repository; it is also a safe part of a path."""
    return (
        isinstance(text, str)
        and 0 < len(text) <= 100
        and not text.startswith((".", "-"))
        and _OWNER_LETTERS.issuperset(text)
    )


def _check_kinds(
    table_name: str,
    table: dict[str, object],
    keys: dict[str, tuple[type | tuple[type, ...], str]],
    file: str,
) -> None:
    check_names(table, keys, f"a setting of {table_name}", file)
    for name, value in table.items():
        kinds, wanted = keys[name]
        if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
            raise BadConfig(file=file, problem=f"{table_name}: {name} must be {wanted}")
        if name in _MOST and not 0 <= value <= _MOST[name]:  # type: ignore[operator]
            raise BadConfig(file=file, problem=f"{table_name}: {name} must be between 0 and {_MOST[name]:,}")
