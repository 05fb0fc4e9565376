"""What mam wrote for an agent: a note of each installation, with the earlier content of every file that it changed.

The note is private (an agent's settings may contain keys) and is written before the first file, so that a killed
installation can be taken back too.
"""

from __future__ import annotations

import os

from mam.errors import Refused
from mam.plugin.edits import TEXT, Wanted, applied, is_present, reverted
from mam.stores.private_files import make_directories, read_json_file, replace_bytes, replace_json_file
from mam.util.frozen import Frozen
from mam.util.state_dir import as_file_name, make_private, state_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

NOTES = "plugins"
FILE_LIMIT = 4 << 20


class Change(Frozen):
    """One file: what it has, and what it gets. None: there is no file."""

    path: str
    before: str | None
    after: str | None


class Installed(Frozen):
    """One installation: an agent, for the user or for a project."""

    agent: str
    project: str | None
    files: tuple[tuple[Wanted, str | None], ...]
    """Each file, with its content before mam changed it first."""


def read_text(path: str) -> str | None:
    """Refused for what is no readable text file: mam must not replace it."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            text = file.read(FILE_LIMIT + 1)
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        raise Refused(why=f"{path} is not a text file that mam can read; mam left it as it is.") from None
    if len(text) > FILE_LIMIT:
        raise Refused(why=f"{path} has more than {FILE_LIMIT:,} characters; mam left it as it is.")
    return text


def plan_install(wanted: list[Wanted]) -> list[Change]:
    """The changes that are still needed."""
    found = [(one, read_text(one.path)) for one in wanted]
    changes = [Change(path=one.path, before=now, after=applied(one, now)) for one, now in found]
    return [change for change in changes if change.before != change.after]


def install(agent: str, project: str | None, wanted: list[Wanted], changes: list[Change]) -> None:
    # Agents share the skill: what the first of them found is what the last of them gives back.
    earlier = {one.path: before for known in installations() for one, before in known.files}
    planned = {change.path: change.before for change in changes}
    files = tuple((one, earlier.get(one.path, planned.get(one.path, read_text(one.path)))) for one in wanted)
    _write_note(Installed(agent=agent, project=project, files=files))
    for change in changes:
        write(change)


def plan_removal(installed: Installed) -> tuple[list[Change], list[str]]:
    """The changes that take the installation back, and the files that the user has changed since: they stay."""
    changes, left = [], []
    shared = {one.path for other in installations() if other != installed for one, _ in other.files}
    for wanted, before in installed.files:
        now = read_text(wanted.path)
        if wanted.path in shared or now is None or now == before:
            continue
        if now == applied(wanted, before):
            after = before
        elif wanted.kind == TEXT:
            left.append(wanted.path)
            continue
        else:
            after = reverted(wanted, before, now)
        if after != now:
            changes.append(Change(path=wanted.path, before=now, after=after))
    return changes, left


def remove(installed: Installed, changes: list[Change]) -> None:
    for change in changes:
        write(change)
    os.unlink(_note_path(installed.agent, installed.project))


def write(change: Change) -> None:
    """Only if the file is still what the user was shown. A link to a settings file stays a link."""
    path = os.path.realpath(change.path)
    if read_text(path) != change.before:
        raise Refused(why=f"{change.path} has changed meanwhile; mam left it as it is. Run the command again.")
    if change.after is None:
        os.unlink(path)
        _remove_empty(os.path.dirname(path))
        return
    make_directories(os.path.dirname(path))
    mode = os.stat(path).st_mode & 0o777 if change.before is not None else 0o644
    replace_bytes(path, change.after.encode(), mode)


def drifted(installed: Installed) -> list[str]:
    """The files that no longer contain what mam wrote."""
    found = []
    for wanted, _ in installed.files:
        try:
            now = read_text(wanted.path)
        except Refused:
            now = None
        if not is_present(wanted, now):
            found.append(wanted.path)
    return found


def find(agent: str, project: str | None) -> Installed | None:
    return _read_note(_note_path(agent, project))


def installations() -> Iterator[Installed]:
    folder = os.path.join(state_directory(), NOTES)
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return
    for name in names:
        found = _read_note(os.path.join(folder, name))
        if found is not None:
            yield found


def _note_path(agent: str, project: str | None) -> str:
    where = "user" if project is None else as_file_name(os.path.realpath(project))
    return os.path.join(state_directory(), NOTES, f"{agent}@{where}"[-240:])


def _write_note(installed: Installed) -> None:
    files = [
        {"path": one.path, "kind": one.kind, "text": one.text, "values": [list(item) for item in one.values],
         "items": [list(item) for item in one.items], "before": before}
        for one, before in installed.files
    ]  # fmt: skip
    path = _note_path(installed.agent, installed.project)
    make_private(os.path.dirname(path))
    replace_json_file(path, {"agent": installed.agent, "project": installed.project, "files": files})


def _read_note(path: str) -> Installed | None:
    found = read_json_file(path) if os.path.isfile(path) else None
    if not isinstance(found, dict):
        return None
    try:
        files = tuple((_wanted(one), one["before"]) for one in found["files"])
        return Installed(agent=found["agent"], project=found["project"], files=files)
    except (KeyError, TypeError, ValueError):
        return None


def _wanted(fields: dict[str, Any]) -> Wanted:
    values, items = (
        tuple((tuple(keys), value) for keys, value in fields.get(name, ())) for name in ("values", "items")
    )
    return Wanted(path=fields["path"], kind=fields["kind"], text=fields["text"], values=values, items=items)


def _remove_empty(directory: str) -> None:
    """The directories that held only this file."""
    home = os.path.expanduser("~")
    while directory not in ("/", home):
        try:
            os.rmdir(directory)
        except OSError:
            return
        directory = os.path.dirname(directory)
