"""The manifest of a session: its command, its tmux session and its names. The record holds the manifest's path."""

from __future__ import annotations

import os

from mam.agents.errors import ManifestMissing, ManifestNotAbsolute, ManifestUnreadable
from mam.agents.files_tree import ownership_problem
from mam.stores.private_files import replace_json_file
from mam.util.frozen import Frozen
from mam.util.state_dir import make_private
from mam.util.strict_json import safe_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SCHEMA_VERSION = 1
SIZE_LIMIT = 1024 * 1024


class Manifest(Frozen):
    backend: str
    agent_name: str
    agent_id: str
    generation_id: str
    tmux_session_name: str
    tmux_socket: str = ""
    tool: str = ""
    command: tuple[str, ...] = ()
    """Empty for an adopted session, whose command is unknown."""
    workdir: str = ""
    agent_def_dir: str | None = None
    created_at: str = ""
    hooks: str = ""
    """`yes` if the agent is configured to call `mam hook`."""


def session_root(agents_dir: str, agent_id: str) -> str:
    return os.path.join(agents_dir, "sessions", agent_id)


def write_manifest(root: str, manifest: Manifest) -> str:
    """Returns the path. Only the owner of the record writes here."""
    root = make_private(root)
    path = os.path.join(root, "manifest.json")
    value = {**manifest.as_dict(), "schema_version": SCHEMA_VERSION, "command": list(manifest.command)}
    replace_json_file(path, value)
    return path


def read_manifest(path: str, name: str) -> Manifest:
    """Each defect has its own error, so that mam never follows a wrong path."""
    if not os.path.isabs(path):
        raise ManifestNotAbsolute(name=name, path=repr(path[:200]))
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        raise ManifestMissing(name=name, path=path) from None
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or str(error)
        raise ManifestUnreadable(name=name, path=path, problem=problem) from None
    with open(descriptor, "rb") as file:
        problem = ownership_problem(os.fstat(descriptor))
        if problem is not None:
            raise ManifestUnreadable(name=name, path=path, problem=problem)
        try:
            data = file.read(SIZE_LIMIT + 1)
        except OSError as error:
            raise ManifestUnreadable(name=name, path=path, problem=error.strerror) from None
    try:
        return _parsed(data)
    except ValueError as error:
        raise ManifestUnreadable(name=name, path=path, problem=f"it is not a manifest ({error})"[:200]) from None


def _parsed(data: bytes) -> Manifest:
    if len(data) > SIZE_LIMIT:
        raise ValueError("it is too large")
    value = safe_json(data)
    if not isinstance(value, dict):
        raise ValueError("not an object")  # noqa: TRY004 - it is the file that is wrong
    command = value.get("command", [])
    if not isinstance(command, list) or not all(isinstance(word, str) for word in command):
        raise ValueError("command is not a list of words")
    fields: dict[str, Any] = {}
    for name in Manifest.field_names:
        if name in value and name != "command":
            if not isinstance(value[name], str) and not (name == "agent_def_dir" and value[name] is None):
                raise ValueError(f"{name} is not a string")
            fields[name] = value[name]
    missing = Manifest.required_fields - fields.keys()
    if missing:
        raise ValueError(f"{', '.join(sorted(missing))} is missing")
    return Manifest(**fields, command=tuple(command))
