"""The half of `mam trust` that is about stores: which one is meant, and what approving it does."""

from __future__ import annotations

import os

from mam.config.project import NAME, find_project_file
from mam.config.settings import load_config
from mam.config.trust import STORES, revoke_store, trust_store, trusted
from mam.errors import Refused, StoreUnavailable
from mam.location.ownership import TrackedFiles, inspect_path, ownership_problem
from mam.location.stores import POSTGRES, SQLITE, STORE_NAMES, locate
from mam.util.clock import SystemClock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.cli.args.parser import Options


def store_meant(options: Options) -> str | None:
    """The path of a store that needs approval or has it; None when a project's file is meant."""
    word: str | None = options.word
    if word is None:
        return _of_here(options)
    if os.path.abspath(word).endswith(f"/{NAME}") or os.path.isfile(os.path.join(word, NAME)):
        return None
    path = os.path.abspath(word.removeprefix(SQLITE))
    inside = [os.path.join(path, name) for name in STORE_NAMES]
    return next((place for place in (path, *inside) if _needs_approval(place)), None)


def _of_here(options: Options) -> str | None:
    if options.store is None and options.registry_dir is None and find_project_file() is not None:
        return None
    try:
        located = locate(options.store, options.registry_dir, load_config())
    except StoreUnavailable:
        return None
    return located.path if located.kind != POSTGRES and _needs_approval(located.path) else None


def _needs_approval(path: str) -> bool:
    """A whole work tree is no store."""
    if path in trusted(STORES):
        return True
    seen = inspect_path(path)
    return (
        seen.about is not None
        and not os.path.lexists(os.path.join(path, ".git"))
        and ownership_problem(seen) is not None
    )


def approve(path: str) -> str:
    """What was wrong with it. Records that were left out are touched, so that the store looks at them again."""
    seen = inspect_path(path)
    if seen.about is None:
        raise Refused(why=f"nothing is at {path}")
    problem = ownership_problem(seen)
    tracked = TrackedFiles(path).now() or ()
    left_out = [name for name in os.listdir(path) if name in tracked] if os.path.isdir(path) else []
    trust_store(path, seen.real, seen.about.st_ino, SystemClock().now().second)
    for name in (*left_out, *([""] if left_out else [])):
        os.utime(os.path.join(seen.real, name), follow_symlinks=False)
    return problem or "is your own"


def revoke_approval(path: str) -> None:
    if not revoke_store(path):
        raise Refused(why=f"{path} was not trusted")


def rows() -> list[dict[str, Any]]:
    return [_row(path, entry) for path, entry in sorted(trusted(STORES).items())]


def _row(path: str, entry: dict[str, Any]) -> dict[str, Any]:
    seen = inspect_path(path)
    there = None if seen.about is None else (seen.real, seen.about.st_ino)
    state = "missing" if there is None else "trusted" if there == (entry["leads_to"], entry["inode"]) else "changed"
    return {"store": path, "leads_to": entry["leads_to"], "trusted_at": entry.get("trusted_at"), "state": state}
