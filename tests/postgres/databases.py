"""One PostgreSQL server for all tests of a run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tests.postgres.server import PrivateServer


@pytest.fixture(scope="session")
def server() -> Iterator[PrivateServer]:
    """Short paths: a socket's address has 107 bytes at most."""
    from tests.postgres.server import PrivateServer

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
        from tests.postgres.server import empty

        empty(given)
        return given
    server: PrivateServer = request.getfixturevalue("server")
    return server.empty_database()
