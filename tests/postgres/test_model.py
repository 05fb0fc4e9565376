"""PostgreSQL beside the model that all stores are held to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test

from mam.registry import Registry
from mam.stores.postgres.store import PostgresStore, create_postgres_store
from tests.postgres.server import empty
from tests.unit.test_model import StoreBesideModel

if TYPE_CHECKING:
    from mam.stores.port import Store


def test_postgresql_agrees_with_the_model(database: str) -> None:
    class PostgresBesideModel(StoreBesideModel):
        def open_store(self) -> Store:
            empty(database)
            create_postgres_store(database)
            return PostgresStore(database, self.clock)

        def reopen(self) -> None:
            self.store.close()
            self.store = PostgresStore(database, self.clock)
            self.registry = Registry(self.store)

        @rule(seconds=st.sampled_from([-5000.0, -1.0, 1.0, 5000.0]))
        def the_wall_clock_is_set(self, seconds: float) -> None:
            """A server has no clock of its boot: for the model every lease is one of an earlier boot."""
            super().the_wall_clock_is_set(seconds)
            self.clocks.boots += 1

    run_state_machine_as_test(
        PostgresBesideModel,
        settings=settings(
            max_examples=15, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
