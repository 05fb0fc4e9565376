"""The settings of prompt-valet: `config/prompt-valet.yaml` below the root, or the file that PV_CONFIG_PATH names."""

from __future__ import annotations

import os

from mam.config.inbox import check_inbox, check_queue
from mam.errors import BadConfig, BadInput
from mam.inbox.shallow_yaml import entries, top_level_keys
from mam.location.ownership import check_path_ownership
from mam.util.frozen import Frozen
from mam.util.safe_read import read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Table = dict[str, Any]

PLACE = os.path.join("config", "prompt-valet.yaml")
SIZE_LIMIT = 64 << 10
INBOX_KEYS = {"pv_root": "root", "git_owner": "owner", "inbox_mode": "mode"}
QUEUE_KEYS = {"max_retries": "max_retries", "failure_archive": "failure_archive", "jobs_root": "jobs_root"}
NOTHING = (None, "", "null", "~")
MODES = {"legacy_single_owner": "single-owner", "multi_owner": "multi-owner"}


class OldSettings(Frozen):
    inbox: Table = {}  # noqa: RUF012 - nothing writes into it
    """As the table `[inbox]`."""
    queue: Table = {}  # noqa: RUF012 - nothing writes into it
    ignored: tuple[str, ...] = ()
    """Keys that have no counterpart in mam."""


def read_old_settings(root: str) -> OldSettings:
    """The settings of the older watcher; empty without a file. BadConfig for one that cannot be read."""
    named = os.environ.get("PV_CONFIG_PATH")
    file = os.path.abspath(os.path.expanduser(named)) if named else os.path.join(root, PLACE)
    if not named:
        if not os.path.lexists(file):
            return OldSettings()
        check_path_ownership(file)
    try:
        _, content = read_regular(file, SIZE_LIMIT, os.O_NOFOLLOW)
    except OSError as error:
        raise BadConfig(file=file, problem=error.strerror or "cannot be read") from None
    if len(content) > SIZE_LIMIT:
        raise BadConfig(file=file, problem=f"has more than {SIZE_LIMIT:,} bytes")
    return _settings(content.decode(errors="replace"), file)


def _settings(text: str, file: str) -> OldSettings:
    top = top_level_keys(text)
    if top.is_empty:
        return OldSettings()
    if top.mistake is not None:
        raise BadConfig(file=file, problem=f"is not a YAML table that mam reads: {top.mistake}")
    blocks = {name: _block(text, name, file) for name in top.keys if name not in top.texts}
    inbox: Table = {new: top.texts[old] for old, new in INBOX_KEYS.items() if top.texts.get(old)}
    if "mode" in inbox:
        inbox["mode"] = MODES.get(inbox["mode"], inbox["mode"])
    if blocks.get("watcher", {}).get("runner_cmd") == "codex":
        inbox["agent"] = "codex"
    queue = blocks.get("queue", {})
    kept: Table = {new: _value(queue[old]) for old, new in QUEUE_KEYS.items() if queue.get(old) not in NOTHING}
    if "queue" in top.texts and top.texts["queue"] not in NOTHING:
        raise BadConfig(file=file, problem="queue must be a table of keys")
    check_inbox(inbox, file)
    check_queue(kept, file)
    return OldSettings(inbox=inbox, queue=kept, ignored=tuple(_ignored(top.texts, blocks)))


def _block(text: str, name: str, file: str) -> dict[str, str | None]:
    """The texts of one table; None for a value that is not one text."""
    try:
        found = entries(text, lambda _key, _line: None, name)
        return {entry.key: entry.value if isinstance(entry.value, str) else None for entry in found}
    except BadInput as bad:
        if name == "queue":
            raise BadConfig(file=file, problem=f"queue: {bad}") from None
        return {}


def _value(text: str | None) -> object:
    """As YAML means it."""
    word = (text or "").lower()
    if word in ("true", "false"):
        return word == "true"
    return int(word) if word.isascii() and word.isdigit() else text


def _ignored(texts: dict[str, str], blocks: dict[str, dict[str, str | None]]) -> list[str]:
    known = {*INBOX_KEYS, *(f"queue.{name}" for name in QUEUE_KEYS), "watcher.runner_cmd"}
    names = [*texts, *(f"{block}.{name}" for block, inner in blocks.items() for name in inner)]
    return sorted(
        name for name in (*names, *(block for block, inner in blocks.items() if not inner)) if name not in known
    )
