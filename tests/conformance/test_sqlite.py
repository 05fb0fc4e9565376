"""The SQLite store passes the suite."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mam.stores.sqlite.store import SqliteStore, create_sqlite_store
from mam.testing.conformance import StoreConformance

if TYPE_CHECKING:
    from mam.stores.port import Store
    from mam.util.clock import Clock


class TestSqlite(StoreConformance):
    @staticmethod
    def open_store(location: str, clock: Clock | None = None) -> Store:
        create_sqlite_store(location)
        return SqliteStore(location, clock)
