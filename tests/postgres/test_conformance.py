"""The PostgreSQL store passes the suite."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mam.stores.postgres.store import PostgresStore, create_postgres_store
from mam.testing.conformance import StoreConformance

if TYPE_CHECKING:
    from mam.stores.port import Store
    from mam.util.clock import Clock


class TestPostgres(StoreConformance):
    has_boot_clock = False

    @pytest.fixture
    def location(self, database: str) -> str:
        return database

    @staticmethod
    def open_store(location: str, clock: Clock | None = None) -> Store:
        create_postgres_store(location)
        return PostgresStore(location, clock)
