"""Between reading the journal and taking the lock, others may have copied, lost or removed what was there."""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from mam.audit import fetch as fetching
from mam.audit.append import copy
from mam.audit.cursor import CursorRead
from mam.audit.fetch import fetch
from mam.audit.lock import AuditLogLock
from mam.audit.log import list_jobs, read_status
from mam.audit.sync import AuditLog
from mam.registry import Registry
from tests.audit.support import Memory, adopt_files, events_of, files_registry, history_in, history_in_log

if TYPE_CHECKING:
    from pathlib import Path


def never(error: OSError) -> None:
    raise error


def test_a_batch_that_another_has_copied_touches_nothing(logs_dir: Path, store: Memory) -> None:
    job = Registry(store).register(prompt="p", agent="a").job
    batch = fetch(str(logs_dir), store)
    AuditLog(str(logs_dir)).follow(store)
    shutil.rmtree(logs_dir / job.job_id)
    with AuditLogLock(str(logs_dir), 0.0) as root:
        copy(root, batch, never)
    assert not (logs_dir / job.job_id).exists()


def test_a_log_that_was_removed_after_the_reading_misses_nothing(
    registry: Registry, logs_dir: Path, store: Memory
) -> None:
    registry.register(prompt="p", agent="a")
    Registry(store).pick("a", owner="me")
    batch = fetch(str(logs_dir), store)
    shutil.rmtree(logs_dir)
    with AuditLogLock(str(logs_dir), 0.0) as root:
        copy(root, batch, never)
    AuditLog(str(logs_dir)).follow(store)
    assert history_in_log(logs_dir) == history_in(store)


def test_a_log_removed_during_a_wait_is_recreated(logs_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock of a removed directory excludes no process."""
    flock = fcntl.flock
    calls: list[int] = []

    def flock_after_removal(descriptor: int, operation: int) -> None:
        calls.append(operation)
        if len(calls) == 1:
            shutil.rmtree(logs_dir)
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock_after_removal)
    with AuditLogLock(str(logs_dir), 0.0):
        assert (logs_dir / ".lock").exists()
        with pytest.raises(TimeoutError), AuditLogLock(str(logs_dir), 0.0):
            pass


def test_a_copy_of_the_descriptor_in_a_child_does_not_keep_the_lock(logs_dir: Path) -> None:
    locked = AuditLogLock(str(logs_dir), 0.0)
    with locked:
        child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=[locked._lock])
    with AuditLogLock(str(logs_dir), 0.0):
        assert child.poll() is None
    child.communicate()


def test_an_act_of_many_jobs_is_copied_in_several_steps(
    tmp_path: Path, logs_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Adopted records come in one act, and a step may end in the middle of it."""
    monkeypatch.setattr(fetching, "ENTRIES_AT_ONCE", 2)
    registry = files_registry(tmp_path / "jobs", logs_dir)
    for number in range(5):
        record = {"job_id": f"old{number}", "status": "pending", "created_at": "2026-06-19T09:30:00Z", "prompt": "p"}
        (tmp_path / "jobs" / f"old{number}.json").write_text(json.dumps(record))
    adopt_files(registry.store)
    sizes = []
    for _ in range(3):
        registry.sweep()
        sizes.append(len(list_jobs(str(logs_dir))))
    assert sizes == [2, 4, 5]
    assert history_in_log(logs_dir) == history_in(registry.store)
    registry.store.close()


def test_many_heartbeats_are_not_read_again_and_again(registry: Registry, logs_dir: Path, store: Memory) -> None:
    job = registry.register(prompt="p", agent="a").job
    registry.pick("a", owner="me")
    for _ in range(fetching.FEW):
        registry.heartbeat(job.job_id, attempt=1)
    assert CursorRead(str(logs_dir), "journal-a").at.number == 2
    registry.heartbeat(job.job_id, attempt=1)
    assert CursorRead(str(logs_dir), "journal-a").at.number == 3 + fetching.FEW
    assert str(CursorRead(str(logs_dir), "journal-a").at.number) == store.end_offset()


def test_reading_the_journal_again_brings_no_old_status_back(
    registry: Registry, logs_dir: Path, store: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = registry.register(prompt="p", agent="a").job
    registry.pick("a", owner="me")
    registry.complete(job.job_id, attempt=1)
    (logs_dir / ".cursor-journal-a").unlink()
    monkeypatch.setattr(fetching, "ENTRIES_AT_ONCE", 1)
    AuditLog(str(logs_dir)).follow(store)
    assert CursorRead(str(logs_dir), "journal-a").at.number == 1
    assert read_status(str(logs_dir), job.job_id) == "completed"


def test_a_refusal_comes_behind_what_the_log_still_lacked(logs_dir: Path, store: Memory) -> None:
    job = Registry(store).register(prompt="p", agent="a").job
    Registry(store).pick("a", owner="me")
    AuditLog(str(logs_dir)).refused(store, job.job_id, "complete", "lost")
    assert events_of(logs_dir, job.job_id) == ["registered", "status_changed", "refused"]
