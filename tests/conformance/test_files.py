"""The files store passes the suite, and the tests that only apply to files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from mam.stores.files.adopt import adopt
from mam.stores.files.store import FilesStore, create_files_store
from mam.testing.conformance import ForeignWrites, StoreConformance

if TYPE_CHECKING:
    from typing import Any

    from mam.stores.port import Store
    from mam.util.clock import Clock


class TestFiles(StoreConformance, ForeignWrites):
    @staticmethod
    def open_store(location: str, clock: Clock | None = None) -> Store:
        create_files_store(location)
        return FilesStore(location, clock)

    def read_record(self, location: str, job_id: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((Path(location) / f"{job_id}.json").read_bytes())
        return found

    def write_record(self, location: str, job_id: str, fields: dict[str, Any]) -> None:
        temporary = Path(location) / f".{job_id}.foreign.tmp"
        temporary.write_text(json.dumps(fields), encoding="utf-8")
        temporary.rename(Path(location) / f"{job_id}.json")

    def remove_record(self, location: str, job_id: str) -> None:
        (Path(location) / f"{job_id}.json").unlink()

    def adopt(self, store: Store, job_id: str) -> str:
        assert isinstance(store, FilesStore)
        (adopted,) = adopt(store, [job_id])
        return adopted.outcome
