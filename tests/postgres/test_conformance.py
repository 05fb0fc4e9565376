"""The PostgreSQL store passes the suite."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mam.stores.postgres.store import create_postgres_store
from mam.testing.conformance import StoreConformance
from tests.postgres.settled import SettledStore

if TYPE_CHECKING:
    from mam.clock import Clock
    from mam.stores.port import Store


class TestPostgres(StoreConformance):
    @pytest.fixture
    def place(self, database: str) -> str:
        return database

    @staticmethod
    def open_store(place: str, clock: Clock | None = None) -> Store:
        create_postgres_store(place)
        return SettledStore(place, clock)
