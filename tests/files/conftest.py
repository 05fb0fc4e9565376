"""A registry in a temporary directory, as a user or another program finds it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mam.registry import Registry
from mam.stores.files.store import FilesStore, create_files_store
from mam.testing.clock import FakeClock


class StoreDir:
    """The directory, and the ways others have with it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = FakeClock()
        self._opened: list[FilesStore] = []
        create_files_store(str(path))

    def open(self) -> Registry:
        """What the next process would have: nothing is carried over but the files."""
        store = FilesStore(str(self.path), clock=self.clock)
        self._opened.append(store)
        return Registry(store)

    def close(self) -> None:
        for store in self._opened:
            store.close()

    def file(self, job_id: str) -> Path:
        return self.path / f"{job_id}.json"

    def fields(self, job_id: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.file(job_id).read_bytes())
        return found

    def rename_in(self, job_id: str, fields: dict[str, Any]) -> None:
        """As the old scripts write: a temporary file, then a rename."""
        temporary = self.path / f".{job_id}.foreign1.tmp"
        temporary.write_text(json.dumps(fields), encoding="utf-8")
        temporary.rename(self.file(job_id))

    def edit(self, job_id: str, change: Callable[[dict[str, Any]], None]) -> None:
        """As the old scripts update: load, change, replace."""
        fields = self.fields(job_id)
        change(fields)
        self.rename_in(job_id, fields)

    def snapshot(self) -> dict[str, bytes]:
        """Every byte of every job, to show that nothing changed."""
        files = [path for path in self.path.iterdir() if path.is_file() and not path.is_symlink()]
        return {path.name: path.read_bytes() for path in files}


def old_record(job_id: str, **changes: Any) -> dict[str, Any]:
    """A record of seed 000, as its scripts wrote it."""
    return {
        "schema_version": 1,
        "job_id": job_id,
        "status": "pending",
        "created_at": "2026-06-19T09:30:00Z",
        "updated_at": "2026-06-19T09:32:00Z",
        "prompt": "정렬 문제 10개를 만들어 sort_problems.md로 저장…",
        "agent": "claude-code",
        "agent_session": "tmux:claude",
        "broker": {"host": "localhost", "port": 1883, "tls": False, "username": None, "password": None},
        "topic_prefix": f"python/mqtt/jobs/{job_id}",
        "timeout_sec": 3600,
        "idle_timeout_sec": 120,
        "expected_artifacts": ["sort_problems.md"],
        "last_seq": 0,
        "auth_token": None,
        **changes,
    }


def copied(origin: StoreDir, path: Path) -> StoreDir:
    """The same registry in another directory, whatever was there before."""
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(origin.path, path)
    store_dir = StoreDir(path)
    store_dir.clock = origin.clock
    return store_dir


@pytest.fixture
def store_dir(tmp_path: Path) -> Iterator[StoreDir]:
    store_dir = StoreDir(tmp_path / "jobs")
    yield store_dir
    store_dir.close()
