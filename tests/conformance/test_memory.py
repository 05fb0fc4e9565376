"""The reference implementation passes the suite."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mam.stores.memory import MemoryStore
from mam.testing.conformance import InProcessConformance

if TYPE_CHECKING:
    from mam.stores.port import Store
    from mam.util.clock import Clock


class TestMemory(InProcessConformance):
    @staticmethod
    def open_store(location: str, clock: Clock | None = None) -> Store:
        return MemoryStore(clock)
