from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.postgres.server import PrivateServer, empty


@pytest.fixture(scope="session")
def server() -> Iterator[PrivateServer]:
    """Short paths: a socket's address has 107 bytes at most."""
    with TemporaryDirectory(prefix="mam-pg-") as folder:
        os.chmod(folder, 0o755)
        server = PrivateServer(Path(folder) / "server")
        yield server
        server.stop()


@pytest.fixture
def database(request: pytest.FixtureRequest) -> str:
    """The address of an empty database, on the private server or on the one that MAM_TEST_POSTGRES names."""
    given = os.environ.get("MAM_TEST_POSTGRES")
    if given:
        empty(given)
        return given
    server: PrivateServer = request.getfixturevalue("server")
    return server.empty_database()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The server's clock does not obey a test."""
    by_server = [item for item in items if item.nodeid.partition("::")[2].startswith("TestByTheServersClock")]
    obeying = {item for item in by_server if isinstance(item, pytest.Function) and "clock" in item.fixturenames}
    if obeying:
        config.hook.pytest_deselected(items=list(obeying))
        items[:] = [item for item in items if item not in obeying]
