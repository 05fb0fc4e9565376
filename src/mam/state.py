"""The user's own directory for what mam remembers outside of stores: what is trusted, and where jobs run."""

from __future__ import annotations

import os

from mam.errors import StoreUnavailable


def state_directory() -> str:
    base = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(os.path.abspath(base), "mam")


def make_private(directory: str) -> str:
    """The directory, made if need be, and nobody's but the user's. Its real path, so that no link is met below it."""
    from mam.stores.beside import make_directories

    make_directories(directory)
    directory = os.path.realpath(directory)
    found = os.stat(directory)
    if found.st_uid != os.geteuid():
        raise StoreUnavailable(store=directory, problem=f"belongs to another user (uid {found.st_uid})")
    if found.st_mode & 0o022:
        raise StoreUnavailable(store=directory, problem="can be written by others; `chmod 700` it first")
    return directory
