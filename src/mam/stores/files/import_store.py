"""Imports into a new files store. The directory has another name until the store is complete."""

from __future__ import annotations

import os

from mam.errors import StoreUnavailable
from mam.stores.files.store import FilesStore, create_files_store
from mam.stores.port import Query
from mam.stores.private_files import sync_directory

SUFFIX = ".filling"


def begin_import(path: str) -> FilesStore:
    """Creates the store, or opens the one of an interrupted import."""
    _check_empty(path)
    create_files_store(path + SUFFIX)
    return FilesStore(path + SUFFIX)


def finish_import(store: FilesStore) -> None:
    """Gives the complete store its name."""
    filled = store.address
    path = filled.removesuffix(SUFFIX)
    store.close()
    _check_empty(path)
    if os.path.isdir(path):
        os.rename(path, f"{path}.empty-{os.urandom(4).hex()}")  # mam deletes no directory of a user
    os.rename(filled, path)
    sync_directory(os.path.dirname(path))


def _check_empty(path: str) -> None:
    if not os.path.lexists(path):
        return
    if not os.path.isdir(path):
        raise StoreUnavailable(store=path, problem="something that is not a directory is in its place")
    if all(name in (".lock", ".store") for name in os.listdir(path)):
        store = FilesStore(path) if os.path.isdir(os.path.join(path, ".store")) else None
        if store is None:
            return
        try:
            if not _holds_anything(store):
                return
        finally:
            store.close()
    raise StoreUnavailable(store=path, problem="is not empty; jobs are moved only into a registry that is")


def _holds_anything(store: FilesStore) -> bool:
    return any(True for _ in store.select(Query())) or any(True for _ in store.archive_contents())
