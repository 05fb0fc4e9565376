"""Stores, logs and reading functions for the tests of the audit log."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from mam.audit.log import iter_lines
from mam.audit.sync import AuditLog
from mam.registry import Registry
from mam.stores.files.adopt import adopt, foreign_ids
from mam.stores.files.store import FilesStore, create_files_store
from mam.stores.memory import MemoryStore

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from mam.stores.port import Store

    Line = dict[str, Any]


class Memory(MemoryStore):
    """A store in memory that has a name of its own and, like real ones, a place for what is not part of it."""

    def __init__(self, name: str = "journal-a") -> None:
        super().__init__()
        self.journal_id = name


def files_registry(place: Path, logs_dir: Path) -> Registry:
    create_files_store(str(place))
    return Registry(FilesStore(str(place)), AuditLog(str(logs_dir)))


def adopt_files(store: Store) -> None:
    """As `mam adopt --all` does."""
    assert isinstance(store, FilesStore)
    list(adopt(store, foreign_ids(store)))


def history_lines(logs_dir: Path, job_id: str) -> list[Line]:
    return list(iter_lines(str(logs_dir), job_id))


def events_of(logs_dir: Path, job_id: str) -> list[str]:
    return [line["event"] for line in history_lines(logs_dir, job_id)]


def raw_lines(logs_dir: Path, job_id: str) -> list[bytes]:
    return (logs_dir / job_id / "events.ndjson").read_bytes().splitlines(keepends=True)


def status_json(logs_dir: Path, job_id: str) -> dict[str, str]:
    found: dict[str, str] = json.loads((logs_dir / job_id / "status.json").read_bytes())
    return found


def history_in(store: Store) -> dict[str, list[Line]]:
    """What the log must hold of each job, straight from the journal: no heartbeats, and no names of entries."""
    told: dict[str, list[Line]] = {}
    for entry in store.entries(None):
        told.setdefault(entry.job_id, []).extend(
            json.loads(json.dumps(line)) for line in entry.lines if line["event"] != "renewed"
        )
    return told


def history_in_log(logs_dir: Path) -> dict[str, list[Line]]:
    """What the log holds of each job, as the journal would say it."""
    jobs = [name for name in os.listdir(logs_dir) if not name.startswith(".")]
    return {
        job_id: [
            {name: value for name, value in line.items() if name != "entry"}
            for line in history_lines(logs_dir, job_id)
            if "entry" in line
        ]
        for job_id in jobs
    }
