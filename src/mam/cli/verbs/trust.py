"""Trust a project's settings or a cloned store; print its path.

A project's .mam/config.toml may contain settings that name commands or directories. mam uses them only if you trust the
current content of the file; a changed file needs trust again. mam prints the effect of the settings on stderr.

mam uses a store that came with a repository, or that belongs to another user, only after you have trusted it. It then
runs the jobs of the store like your own. If the path leads to another directory later, the store needs trust again.

  mam trust              # the nearest .mam/config.toml, else the store
  mam trust .mam/jobs    # a store
  mam trust --revoke
  mam trust --list
"""

from __future__ import annotations

import os

from mam.cli.render.streams import json_text, print_json, print_json_array, print_row, say
from mam.config.project import NAME, canonical, find_project_file, read_project_file
from mam.config.settings import SETTINGS, load_config
from mam.config.trust import STORES, revoke, revoke_store, trust, trust_store, trusted
from mam.errors import BadInput, MamError, Refused, StoreUnavailable
from mam.location.ownership import TrackedFiles, inspect_path, ownership_problem
from mam.location.stores import POSTGRES, SQLITE, STORE_NAMES, locate
from mam.machine.agent_tree import check_outside_agents
from mam.machine.environment import without_password
from mam.util.clock import SystemClock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from mam.cli.args.parser import Options, Parser
    from mam.config.project import ProjectFile
    from mam.config.settings import Values

_HARMLESS = frozenset(setting.name for setting in SETTINGS if setting.harmless)


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "word", nargs="?", metavar="PATH", help="the file, its project or a store; default: the nearest"
    )
    parser.add_argument("--revoke", action="store_true", help="revoke the trust")
    parser.add_argument("--list", action="store_true", help="list what you trust: path, hash and state")


def run(options: Options) -> int:
    if options.list:
        if options.revoke or options.word is not None:
            raise BadInput(why="--list takes no other option")
        return _list(as_json=options.json)
    check_outside_agents("trust")
    store = _store_meant(options)
    if store is not None:
        return _store(store, options)
    if options.revoke:
        return _revoke(_path(options.word), as_json=options.json)
    found = _found(options.word)
    before = trusted().get(found.path, {}).get("sha256")
    changed = before is not None and before != found.digest
    values = found.values
    for sentence in effects(values):
        say(sentence)
    if changed:
        say("you trusted an earlier content of this file")
    trust(found.path, found.digest, SystemClock().now().second)
    if options.json:
        print_json({"file": found.path, "sha256": found.digest, "changed": changed, "settings": sorted(values)})
    else:
        print_row(found.path)
    return 0


def _store(path: str, options: Options) -> int:
    if options.revoke:
        _revoke_approval(path)
    else:
        say(f"it {_approve(path)}; mam now runs its jobs and uses the brokers that they name")
    if options.json:
        print_json({"store": path, "trusted": not options.revoke})
    else:
        print_row(path)
    return 0


def effects(values: Values) -> Iterator[str]:
    """The effect of a file: one sentence for each setting that needs trust, and one for the others."""
    for name, value in values.items():
        if name == "commands":
            yield from (f"it runs {json_text(table['argv'])} for the agent {agent}" for agent, table in value.items())
            yield from (
                f"it gives the agent {agent} the variables {', '.join(table['env'])}"
                for agent, table in value.items()
                if table.get("env")
            )
        elif name not in _HARMLESS:
            yield f"it sets {name} to {json_text(without_password(value) if name == 'store' else value)}"
    rest = [name for name in values if name in _HARMLESS]
    if rest:
        yield f"it sets {', '.join(rest)}, which needs no trust"
    if not values:
        yield "it contains no settings"


def _found(word: str | None) -> ProjectFile:
    if word is None:
        found = find_project_file()
        if found is None:
            raise Refused(why=f"no {NAME} of yours in this directory or above")
        return found
    path = _path(word)
    found = read_project_file(path)
    if found is None:
        raise Refused(why=f"{path} is not a file of yours")
    return found


def _path(word: str | None) -> str:
    if word is None:
        found = find_project_file()
        if found is not None:
            return found.path
        word = "."
    path = os.path.join(word, NAME) if os.path.isdir(word) else word
    if not os.path.abspath(path).endswith(f"/{NAME}"):
        raise BadInput(why=f"{word[:200]} is not the {NAME} of a project; no other file needs trust")
    return canonical(path)


def _revoke(path: str, *, as_json: bool) -> int:
    if not revoke(path):
        raise Refused(why=f"{path} was not trusted")
    if as_json:
        print_json({"file": path, "trusted": False})
    else:
        print_row(path)
    return 0


def _list(*, as_json: bool) -> int:
    files = [_row(path, entry) for path, entry in sorted(trusted().items())]
    if as_json:
        print_json_array([*files, *_store_rows()])
        return 0
    for row in files:
        print_row(row["file"], row["sha256"], row["state"])
    for row in _store_rows():
        print_row(row["store"], "store", row["state"])
    return 0


def _row(path: str, entry: dict[str, Any]) -> dict[str, Any]:
    try:
        found = read_project_file(path)
        state = "missing" if found is None else "trusted" if found.digest == entry["sha256"] else "changed"
    except (MamError, OSError):
        state = "missing"
    return {"file": path, "sha256": str(entry["sha256"]), "trusted_at": entry.get("trusted_at"), "state": state}


# -- stores ----------------------------------------------------------------------------------------------------------


def _store_meant(options: Options) -> str | None:
    """The path of a store that needs trust or has it; None if the command means a project's file."""
    word: str | None = options.word
    if word is None:
        return _store_here(options)
    if os.path.abspath(word).endswith(f"/{NAME}") or os.path.isfile(os.path.join(word, NAME)):
        return None
    path = os.path.abspath(word.removeprefix(SQLITE))
    inside = [os.path.join(path, name) for name in STORE_NAMES]
    return next((place for place in (path, *inside) if _needs_approval(place)), None)


def _store_here(options: Options) -> str | None:
    if options.store is None and options.registry_dir is None and find_project_file() is not None:
        return None
    try:
        located = locate(options.store, options.registry_dir, load_config())
    except StoreUnavailable:
        return None
    return located.path if located.kind != POSTGRES and _needs_approval(located.path) else None


def _needs_approval(path: str) -> bool:
    """A directory with .git is a work tree and not a store."""
    if path in trusted(STORES):
        return True
    seen = inspect_path(path)
    return (
        seen.about is not None
        and not os.path.lexists(os.path.join(path, ".git"))
        and ownership_problem(seen) is not None
    )


def _approve(path: str) -> str:
    """Trust the store; return what was wrong with it. mam ignored the tracked records; touching makes it read them."""
    seen = inspect_path(path)
    if seen.about is None:
        raise Refused(why=f"{path} does not exist")
    problem = ownership_problem(seen)
    tracked = TrackedFiles(path).now() or ()
    left_out = [name for name in os.listdir(path) if name in tracked] if os.path.isdir(path) else []
    trust_store(path, seen.real, seen.about.st_ino, SystemClock().now().second)
    for name in (*left_out, *([""] if left_out else [])):
        os.utime(os.path.join(seen.real, name), follow_symlinks=False)
    return problem or "is yours"


def _revoke_approval(path: str) -> None:
    if not revoke_store(path):
        raise Refused(why=f"{path} was not trusted")


def _store_rows() -> list[dict[str, Any]]:
    return [_store_row(path, entry) for path, entry in sorted(trusted(STORES).items())]


def _store_row(path: str, entry: dict[str, Any]) -> dict[str, Any]:
    seen = inspect_path(path)
    there = None if seen.about is None else (seen.real, seen.about.st_ino)
    state = "missing" if there is None else "trusted" if there == (entry["leads_to"], entry["inode"]) else "changed"
    return {"store": path, "leads_to": entry["leads_to"], "trusted_at": entry.get("trusted_at"), "state": state}
