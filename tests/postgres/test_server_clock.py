"""What the suite asks of claims, by the server's own clock: that is the way that everybody but a test takes.

Tests that need a clock that obeys are not collected here (conftest.py); test_conformance.py has them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mam.stores.postgres.store import create_postgres_store
from mam.testing.conformance import StoreConformance  # first, so that assertions of the suite speak
from mam.testing.conformance.claims import Claims
from mam.testing.conformance.dependencies import Dependencies
from mam.testing.conformance.exclusive import Exclusive
from mam.testing.conformance.pauses import Pauses
from tests.postgres.settled import SettledStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.clock import Clock
    from mam.stores.port import Store

__all__ = ["TestByTheServersClock"]


class TestByTheServersClock(Claims, Dependencies, Exclusive, Pauses):
    shared_by_processes = StoreConformance.shared_by_processes

    @pytest.fixture
    def place(self, database: str) -> str:
        return database

    @staticmethod
    def open_store(place: str, clock: Clock | None = None) -> Store:
        assert clock is None
        create_postgres_store(place)
        return SettledStore(place)

    @pytest.fixture
    def store(self, place: str) -> Iterator[Store]:
        store = self.open_store(place)
        yield store
        store.close()
