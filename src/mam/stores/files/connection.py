"""Opens the database of a files store: checks the owner of the directory, opens a read-only one, and advises on a
damaged one."""

from __future__ import annotations

import os
import stat
from errno import EACCES, EDQUOT, ENOSPC, ENOTDIR, EPERM, EROFS

import apsw

from mam.errors import StoreMissing, StoreOutdated, StoreReadOnly, StoreUnavailable
from mam.location.ownership import is_approved_path
from mam.stores.sqlite.database import open_database, open_to_read

_REBUILD = "`mam rebuild` makes it again from the record files"


def check_directory(path: str) -> None:
    try:
        found = os.stat(path)
        if not stat.S_ISDIR(found.st_mode):
            raise NotADirectoryError(ENOTDIR, os.strerror(ENOTDIR))
        if not os.access(path, os.R_OK | os.X_OK):
            raise PermissionError(EACCES, os.strerror(EACCES))
    except FileNotFoundError:
        raise StoreMissing(store=path) from None
    except OSError as error:
        raise StoreUnavailable(store=path, problem=error.strerror) from None
    if found.st_uid != os.geteuid() and not is_approved_path(path):
        why = f"belongs to another user (uid {found.st_uid}), whose files mam does not touch"
        raise StoreUnavailable(store=path, problem=why)
    if found.st_mode & stat.S_IWOTH:
        raise StoreUnavailable(store=path, problem="can be written by every user; `chmod 700` it first")


def open_connection(
    directory: str, path: str, wait_seconds: float, *, shared: bool = True, read_only: bool = False
) -> apsw.Connection:
    """Opens the database. On a full disk, or in a directory that cannot be written, it is opened for reading."""
    try:
        if read_only:
            return _open_read_only(directory, path, wait_seconds)
        return open_database(path, wait_seconds, shared=shared, under_lock=True)
    except StoreMissing:  # the file exists and is empty
        raise StoreUnavailable(store=directory, problem=f"its database is empty; {_REBUILD}") from None
    except StoreOutdated:
        raise
    except StoreUnavailable as problem:
        if not read_only and "the disk is full" in str(problem):
            return _open_read_only(directory, path, wait_seconds)
        raise with_advice(directory, problem) from None


def _open_read_only(directory: str, path: str, wait_seconds: float) -> apsw.Connection:
    if not os.path.exists(path):
        raise StoreReadOnly(
            store=directory, problem="the directory cannot be written, so mam cannot make its database in it"
        )
    return open_to_read(path, wait_seconds)


def with_advice(directory: str, problem: StoreUnavailable) -> StoreUnavailable:
    """Adds the advice to rebuild, for a database that the record files can replace."""
    why = str(problem.facts["problem"])
    if why.startswith(("is damaged", "is not an SQLite database", "is a database of another program")):
        why = f"its database {why.partition(';')[0]}; {_REBUILD}"
    return type(problem)(store=directory, problem=why)


def damaged_database(directory: str) -> StoreUnavailable:
    return StoreUnavailable(store=directory, problem=f"its database is damaged; {_REBUILD}")


def unavailable(directory: str, error: OSError) -> StoreUnavailable:
    cannot_write = error.errno in (ENOSPC, EDQUOT, EROFS, EACCES, EPERM)
    return (StoreReadOnly if cannot_write else StoreUnavailable)(store=directory, problem=error.strerror)
