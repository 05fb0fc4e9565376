"""A schema that is being filled says so by its version: half a registry is never taken for one."""

from __future__ import annotations

from mam.errors import StoreUnavailable
from mam.stores.postgres.schema import check_version_while_importing
from mam.stores.postgres.store import PostgresStore, create_postgres_store


class ImportingStore(PostgresStore):
    """Opens what nobody else opens yet."""

    check_version = staticmethod(check_version_while_importing)


def begin_import(url: str) -> ImportingStore:
    """The store to fill: a new or empty one, or the one that somebody was filling when they were cut off."""
    create_postgres_store(url, filling=True)
    store = ImportingStore(url)
    if not store._rows("begin import"):
        store.close()
        problem = "is not empty; jobs are moved only into a registry that is"
        raise StoreUnavailable(store=store.address, problem=problem)
    return store


def finish_import(store: ImportingStore) -> None:
    """From now on it is a registry like any other."""
    store._rows("finish import")
    store.close()
