"""Imports into a new SQLite store. The database has another name until it is complete."""

from __future__ import annotations

import os

import apsw

from mam.errors import StoreUnavailable
from mam.stores.port import Query
from mam.stores.private_files import sync_directory
from mam.stores.sqlite.database import sqlite_address, unavailable
from mam.stores.sqlite.store import WAIT_SECONDS, SqliteStore, create_sqlite_store

SUFFIX = ".filling"
_BESIDE = ("-secrets", "")
"""The files of a store. The database comes last: a store exists once it has its name."""


def begin_import(path: str) -> SqliteStore:
    """Creates the store, or opens the one of an interrupted import."""
    path = os.path.realpath(path)
    _check_empty(path)
    create_sqlite_store(path + SUFFIX)
    return SqliteStore(path + SUFFIX)


def finish_import(store: SqliteStore) -> None:
    """Gives the complete store its name."""
    filled = store.address.removeprefix("sqlite://")
    path = filled.removesuffix(SUFFIX)
    store.close()
    _check_empty(path)
    _in_one_file(filled)
    if os.path.exists(path):
        os.rename(path, f"{path}.empty-{os.urandom(4).hex()}")  # mam deletes no file of a user, not even an empty one
    for suffix in _BESIDE:
        if os.path.exists(filled + suffix):
            os.rename(filled + suffix, path + suffix)
    if os.path.exists(filled + "-bell"):
        os.unlink(filled + "-bell")  # the wake file
    sync_directory(os.path.dirname(path))


def _in_one_file(path: str) -> None:
    """Moves the rest of the log into the database, so that one rename moves everything."""
    try:
        database = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            database.execute("PRAGMA synchronous = FULL").fetchall()
            database.execute("PRAGMA journal_mode = DELETE").fetchall()
        finally:
            database.close()
    except apsw.Error as error:
        raise unavailable(path, error, WAIT_SECONDS) from None


def _check_empty(path: str) -> None:
    if not os.path.lexists(path):
        return
    store = SqliteStore(path)
    try:
        if not any(True for _ in store.select(Query())) and not any(True for _ in store.archive_contents()):
            return
    finally:
        store.close()
    problem = "is not empty; jobs are moved only into a registry that is"
    raise StoreUnavailable(store=sqlite_address(path), problem=problem)
