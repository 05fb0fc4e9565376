"""The reference passes the suite that it is the reference for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mam.stores.memory import MemoryStore
from mam.testing.conformance import InProcessConformance

if TYPE_CHECKING:
    from mam.clock import Clock
    from mam.stores.port import Store


class TestMemory(InProcessConformance):
    @staticmethod
    def open_store(place: str, clock: Clock | None = None) -> Store:
        return MemoryStore(clock)
