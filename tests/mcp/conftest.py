from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mam.config.settings import Config
from mam.location.stores import create_store, open_located, parse_address
from tests.cli.command import Mam
from tests.mcp.world import STORES, World


@pytest.fixture(autouse=True)
def with_people(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under `CI`, jobs may not ask unless they say so."""
    monkeypatch.delenv("CI", raising=False)


@pytest.fixture(params=STORES)
def world(request: pytest.FixtureRequest, mam: Mam, tmp_path: Path) -> Iterator[World]:
    if request.param == "postgres":
        address: str = request.getfixturevalue("database")
    else:
        address = str(mam.here / ".mam/jobs") if request.param == "files" else f"sqlite://{tmp_path}/jobs.db"
    located = parse_address(address, "the test")
    create_store(located, Config())
    registry = open_located(located, Config())
    yield World(mam, address, registry)
    registry.store.close()
