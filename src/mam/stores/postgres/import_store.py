"""Imports into a new PostgreSQL store. The version of the schema is negative until the store is complete."""

from __future__ import annotations

from mam.errors import StoreUnavailable
from mam.stores.postgres.schema import check_version_while_importing
from mam.stores.postgres.store import PostgresStore, create_postgres_store


class ImportingStore(PostgresStore):
    """Opens a store while it is being imported."""

    check_version = staticmethod(check_version_while_importing)


def begin_import(url: str) -> ImportingStore:
    """Creates the store, or opens an empty one or that of an interrupted import."""
    create_postgres_store(url, filling=True)
    store = ImportingStore(url)
    if not store._rows("begin import"):
        store.close()
        problem = "is not empty; jobs are moved only into a registry that is"
        raise StoreUnavailable(store=store.address, problem=problem)
    return store


def finish_import(store: ImportingStore) -> None:
    """Lets other processes open the store."""
    store._rows("finish import")
    store.close()
