"""Eight processes on one server, until nothing is left: every job is claimed and finished exactly once."""

from __future__ import annotations

from functools import partial

from mam.stores.postgres.store import PostgresStore, create_postgres_store
from tests.conformance.test_many import EACH, PROCESSES, check_exactly_once


def test_eight_processes_claim_every_job_exactly_once(database: str) -> None:
    create_postgres_store(database)
    numbers = check_exactly_once(partial(PostgresStore, database))
    assert len(set(numbers)) == PROCESSES * EACH
