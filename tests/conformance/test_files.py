"""The files store passes the suite."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mam.stores.files.store import FilesStore, create_files_store
from mam.testing.conformance import StoreConformance

if TYPE_CHECKING:
    from mam.clock import Clock
    from mam.stores.port import Store


class TestFiles(StoreConformance):
    @staticmethod
    def open_store(place: str, clock: Clock | None = None) -> Store:
        create_files_store(place)
        return FilesStore(place, clock)
