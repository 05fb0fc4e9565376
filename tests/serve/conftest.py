from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mam.registry import Registry
from mam.stores.memory import MemoryStore
from mam.util.clock import SystemClock
from tests.serve.serving import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.serve.serving import Serving


@pytest.fixture
def served() -> Iterator[Serving]:
    """A server over a store in memory."""
    with serving(Registry(MemoryStore(SystemClock()))) as found:
        yield found
