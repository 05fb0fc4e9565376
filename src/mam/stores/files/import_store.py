"""A files store that is being filled has another name until it is whole: half a registry is never taken for one."""

from __future__ import annotations

import os

from mam.errors import StoreUnavailable
from mam.stores.files.store import FilesStore, create_files_store
from mam.stores.port import Query
from mam.stores.private_files import sync_directory

SUFFIX = ".filling"


def begin_import(path: str) -> FilesStore:
    """The store to fill: a new one, or the one that somebody was filling when they were cut off."""
    _check_empty(path)
    create_files_store(path + SUFFIX)
    return FilesStore(path + SUFFIX)


def finish_import(store: FilesStore) -> None:
    """From now on it is the registry of that name."""
    filled = store.address
    path = filled.removesuffix(SUFFIX)
    store.close()
    _check_empty(path)
    if os.path.isdir(path):
        os.rename(path, f"{path}.empty-{os.urandom(4).hex()}")  # mam deletes nobody's directory, not even an empty one
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
