"""The scripted model, and the assurance that nothing else can be reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.real_agents.alone import is_alone
from tests.real_agents.model_server import ModelServer

if TYPE_CHECKING:
    from collections.abc import Iterator


def pytest_sessionstart() -> None:
    if not is_alone():
        pytest.exit("the real agents run only where nothing but loopback is: `make test-agents`", returncode=1)


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server
