"""What the suite asks, by the server's own clock: the same statements, without a time from outside.

Tests that need a clock that obeys are not collected here (conftest.py); test_conformance.py has them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mam.stores.postgres.store import PostgresStore, create_postgres_store
from mam.testing.conformance import StoreConformance  # first, so that assertions of the suite speak
from mam.testing.conformance.archives import Archives
from mam.testing.conformance.claims import Claims
from mam.testing.conformance.dependencies import Dependencies
from mam.testing.conformance.exclusive import Exclusive
from mam.testing.conformance.fences import Fences
from mam.testing.conformance.generations import Generations
from mam.testing.conformance.journal import Journals
from mam.testing.conformance.lifecycle import Lifecycle
from mam.testing.conformance.pauses import Pauses
from mam.testing.conformance.registration import Registrations
from mam.testing.conformance.sequence import Sequences

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.stores.port import Store
    from mam.util.clock import Clock

__all__ = ["TestByTheServersClock"]


class TestByTheServersClock(
    Registrations,
    Claims,
    Fences,
    Lifecycle,
    Sequences,
    Journals,
    Dependencies,
    Exclusive,
    Pauses,
    Generations,
    Archives,
):
    shared_by_processes = StoreConformance.shared_by_processes
    has_boot_clock = False

    @pytest.fixture
    def location(self, database: str) -> str:
        return database

    @staticmethod
    def open_store(location: str, clock: Clock | None = None) -> Store:
        assert clock is None
        create_postgres_store(location)
        return PostgresStore(location)

    @pytest.fixture
    def store(self, location: str) -> Iterator[Store]:
        store = self.open_store(location)
        yield store
        store.close()
