"""The user's state directory: what is trusted, where jobs run, and which stores the user has opened."""

from __future__ import annotations

import os

from mam.errors import StoreUnavailable

STORES = "stores"


def state_directory() -> str:
    base = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(os.path.abspath(base), "mam")


def remember_store(address: str) -> None:
    """Creates one empty file for each store, named after its address: no file has to be read, locked or rewritten. A
    failure is ignored."""
    path = os.path.join(state_directory(), STORES, as_file_name(address))
    if os.path.exists(path):
        return
    try:
        directory = make_private(os.path.dirname(path))
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        from mam.stores.private_files import sync_directory

        sync_directory(directory)
    except (OSError, ValueError, StoreUnavailable):
        return  # the address is too long for a file name, or the home is read-only


def known_stores() -> list[str]:
    """The addresses of all stores that this user has opened, sorted."""
    try:
        names = os.listdir(os.path.join(state_directory(), STORES))
    except OSError:
        return []
    return sorted(name.replace("%2F", "/").replace("%25", "%") for name in names)


def forget_store(address: str) -> None:
    os.unlink(os.path.join(state_directory(), STORES, as_file_name(address)))


def as_file_name(address: str) -> str:
    """The address, escaped for use as a file name."""
    return address.replace("%", "%25").replace("/", "%2F")


def make_private(directory: str) -> str:
    """Creates the directory if it is missing, refuses one that others can write, and returns its real path."""
    from mam.stores.private_files import make_directories

    make_directories(directory)
    directory = os.path.realpath(directory)
    found = os.stat(directory)
    if found.st_uid != os.geteuid():
        raise StoreUnavailable(store=directory, problem=f"belongs to another user (uid {found.st_uid})")
    if found.st_mode & 0o022:
        raise StoreUnavailable(store=directory, problem="can be written by others; `chmod 700` it first")
    return directory
