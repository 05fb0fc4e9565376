"""The settings of prompt-valet: `config/prompt-valet.yaml` below the root, or the file that PV_CONFIG_PATH names."""

from __future__ import annotations

import os

from mam.config.inbox import check_inbox, check_queue
from mam.errors import BadConfig
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
    return _settings(_parse(content, file), file)


def _parse(content: bytes, file: str) -> Table:
    import yaml

    try:
        table = yaml.safe_load(content)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadConfig(file=file, problem=f"is not YAML ({type(error).__name__})") from None
    if table is None:
        return {}
    if not isinstance(table, dict) or not all(isinstance(name, str) for name in table):
        raise BadConfig(file=file, problem="is not a table of keys")
    return table


def _settings(table: Table, file: str) -> OldSettings:
    queue = table.get("queue") or {}
    if not isinstance(queue, dict) or not all(isinstance(name, str) for name in queue):
        raise BadConfig(file=file, problem="queue must be a table of keys")
    inbox = {new: table[old] for old, new in INBOX_KEYS.items() if table.get(old) is not None}
    if "mode" in inbox:
        inbox["mode"] = MODES.get(inbox["mode"], inbox["mode"]) if isinstance(inbox["mode"], str) else inbox["mode"]
    watcher = table.get("watcher")
    if isinstance(watcher, dict) and watcher.get("runner_cmd") == "codex":
        inbox["agent"] = "codex"
    kept = {new: queue[old] for old, new in QUEUE_KEYS.items() if queue.get(old) is not None}
    check_inbox(inbox, file)
    check_queue(kept, file)
    return OldSettings(inbox=inbox, queue=kept, ignored=tuple(_ignored(table)))


def _ignored(table: Table) -> list[str]:
    known = {*INBOX_KEYS, *(f"queue.{name}" for name in QUEUE_KEYS), "watcher.runner_cmd"}
    names = []
    for name, value in table.items():
        names += [f"{name}.{inner}" for inner in value] if isinstance(value, dict) else [name]
    return sorted(name for name in names if name not in known)
