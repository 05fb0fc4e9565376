"""The user's own directory for what mam remembers outside of stores: what is trusted, where jobs run, which stores."""

from __future__ import annotations

import os

from mam.errors import StoreUnavailable

STORES = "stores"


def state_directory() -> str:
    base = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(os.path.abspath(base), "mam")


def remember_store(address: str) -> None:
    """One empty file for each store, named by its address: an open store costs one look at a name, and nothing has to
    be read, locked or rewritten. That it cannot be remembered stops nobody."""
    path = os.path.join(state_directory(), STORES, as_file_name(address))
    if os.path.exists(path):
        return
    try:
        directory = make_private(os.path.dirname(path))
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        from mam.stores.private_files import sync_directory

        sync_directory(directory)
    except (OSError, ValueError, StoreUnavailable):
        return  # an address that is longer than a file's name can be, a home that cannot be written


def known_stores() -> list[str]:
    """The addresses of all stores that this user has opened, in order."""
    try:
        names = os.listdir(os.path.join(state_directory(), STORES))
    except OSError:
        return []
    return sorted(name.replace("%2F", "/").replace("%25", "%") for name in names)


def forget_store(address: str) -> None:
    os.unlink(os.path.join(state_directory(), STORES, as_file_name(address)))


def as_file_name(address: str) -> str:
    """As the name of a file."""
    return address.replace("%", "%25").replace("/", "%2F")


def make_private(directory: str) -> str:
    """The directory, made if need be, and nobody's but the user's. Its real path, so that no link is met below it."""
    from mam.stores.private_files import make_directories

    make_directories(directory)
    directory = os.path.realpath(directory)
    found = os.stat(directory)
    if found.st_uid != os.geteuid():
        raise StoreUnavailable(store=directory, problem=f"belongs to another user (uid {found.st_uid})")
    if found.st_mode & 0o022:
        raise StoreUnavailable(store=directory, problem="can be written by others; `chmod 700` it first")
    return directory
