"""Let a project's .mam/config.toml count in full, or approve a cloned store; prints its path.

A project may bring settings that name commands or places. They count only when you have trusted exactly what the file
says now; when it changes, it must be trusted again. What it would do is said on stderr.

A store that came with a repository, or belongs to another user, is used only after you have approved it: its jobs are
then run like your own. It must be approved again when its path leads to another directory.

  mam trust                 # the nearest .mam/config.toml upward from here, else the store of this place
  mam trust .mam/jobs       # a store
  mam trust --revoke
  mam trust --list
"""

from __future__ import annotations

import os

from mam.cli.render.streams import encoded, put, put_json, put_json_array, say
from mam.cli.trusted_stores import approve, revoke_approval, rows, store_meant
from mam.config.project import NAME, canonical, find_project_file, read_project_file
from mam.config.settings import SETTINGS
from mam.config.trust import revoke, trust, trusted
from mam.errors import BadInput, MamError, Refused
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
        "word", nargs="?", metavar="PATH", help="the file, the project it is in, or a store; default: the nearest"
    )
    parser.add_argument("--revoke", action="store_true", help="trust it no longer")
    parser.add_argument("--list", action="store_true", help="what is trusted: path, hash, and whether it still holds")


def run(options: Options) -> int:
    if options.list:
        if options.revoke or options.word is not None:
            raise BadInput(why="--list stands alone")
        return _list(as_json=options.json)
    if os.environ.get("MAM_SOCKET"):
        raise Refused(why="this runs inside a job; trust is for a person to give, and not for an agent")
    store = store_meant(options)
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
        say("it had been trusted before, and has changed since")
    trust(found.path, found.digest, SystemClock().now().second)
    if options.json:
        put_json({"file": found.path, "sha256": found.digest, "changed": changed, "settings": sorted(values)})
    else:
        put(found.path)
    return 0


def _store(path: str, options: Options) -> int:
    if options.revoke:
        revoke_approval(path)
    else:
        say(f"it {approve(path)}; mam runs its jobs and uses the brokers that they name from now on")
    if options.json:
        put_json({"store": path, "trusted": not options.revoke})
    else:
        put(path)
    return 0


def effects(values: Values) -> Iterator[str]:
    """What a file does, one sentence for each thing that an untrusted one may not do, and one for the rest."""
    for name, value in values.items():
        if name == "commands":
            yield from (f"it runs {encoded(table['argv'])} for the agent {agent}" for agent, table in value.items())
            yield from (
                f"it gives the agent {agent} the variables {', '.join(table['env'])}"
                for agent, table in value.items()
                if table.get("env")
            )
        elif name not in _HARMLESS:
            yield f"it sets {name} to {encoded(without_password(value) if name == 'store' else value)}"
    rest = [name for name in values if name in _HARMLESS]
    if rest:
        yield f"it sets {', '.join(rest)}, which needs no trust"
    if not values:
        yield "it sets nothing"


def _found(word: str | None) -> ProjectFile:
    if word is None:
        found = find_project_file()
        if found is None:
            raise Refused(why=f"there is no {NAME} of yours upward from here")
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
        raise BadInput(why=f"{word[:200]} is not a project's {NAME}, and no other file needs trust")
    return canonical(path)


def _revoke(path: str, *, as_json: bool) -> int:
    if not revoke(path):
        raise Refused(why=f"{path} was not trusted")
    if as_json:
        put_json({"file": path, "trusted": False})
    else:
        put(path)
    return 0


def _list(*, as_json: bool) -> int:
    files = [_row(path, entry) for path, entry in sorted(trusted().items())]
    if as_json:
        put_json_array([*files, *rows()])
        return 0
    for row in files:
        put(row["file"], row["sha256"], row["state"])
    for row in rows():
        put(row["store"], "store", row["state"])
    return 0


def _row(path: str, entry: dict[str, Any]) -> dict[str, Any]:
    try:
        found = read_project_file(path)
        state = "missing" if found is None else "trusted" if found.digest == entry["sha256"] else "changed"
    except (MamError, OSError):
        state = "missing"
    return {"file": path, "sha256": str(entry["sha256"]), "trusted_at": entry.get("trusted_at"), "state": state}
