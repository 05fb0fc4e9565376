"""The audit log fails, the registry does not: mam reports and counts the problem, and a later act adds the lines."""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
from typing import TYPE_CHECKING

import pytest

from mam.audit import append, failures, sync
from mam.audit.failures import read_failures
from mam.audit.lock import AuditLogLock
from mam.audit.sync import AuditLog
from mam.errors import ClaimLost, StoreUnavailable
from mam.registry import Registry
from mam.util.notices import warn
from tests.audit.support import (
    Memory,
    adopt_files,
    events_of,
    files_registry,
    history_in,
    history_in_log,
    history_lines,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mam.stores.port import Entry


@pytest.fixture
def files(tmp_path: Path, logs_dir: Path) -> Iterator[Registry]:
    registry = files_registry(tmp_path / "jobs", logs_dir)
    yield registry
    registry.store.close()


def test_a_log_that_cannot_be_written_breaks_nothing(
    files: Registry, logs_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """M-20. A file in place of the directory stops even root."""
    logs_dir.write_text("in the way")
    job = files.register(prompt="p", agent="a").job
    assert files.pick("a", owner="me") is not None
    files.complete(job.job_id, attempt=1)
    with pytest.raises(ClaimLost):
        files.heartbeat(job.job_id, attempt=1)
    assert files.get(job.job_id).status == "completed"
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert str(logs_dir) in caplog.text
    assert logs_dir.read_text() == "in the way"


def test_failures_are_counted_beside_the_store(files: Registry, logs_dir: Path) -> None:
    assert files.store.home is not None
    assert read_failures(files.store.home) is None
    logs_dir.write_text("in the way")
    files.register(prompt="p", agent="a")
    files.pick("a", owner="me")
    counted = read_failures(files.store.home)
    assert counted is not None
    assert counted["count"] == 2
    assert str(logs_dir) in counted["last"]
    assert counted["at"].endswith("Z")


def test_a_count_that_cannot_be_saved_is_harmless(files: Registry, logs_dir: Path) -> None:
    assert files.store.home is not None
    files.register(prompt="p", agent="a")
    logs_dir.rename(logs_dir.with_name("aside"))
    logs_dir.write_text("in the way")
    os.mkdir(os.path.join(files.store.home, "audit.failures"))
    assert files.register(prompt="p", agent="a").created


def test_a_full_disk_leaves_no_partial_count(files: Registry, logs_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int, _data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    assert files.store.home is not None
    logs_dir.write_text("in the way")
    monkeypatch.setattr(failures, "write_all", full)
    files.register(prompt="p", agent="a")
    assert [name for name in os.listdir(files.store.home) if name.startswith("audit.")] == []


def test_without_a_log_handler_a_warning_is_one_line_of_mam(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logging.getLogger("mam.audit"), "propagate", False)
    warn("mam.audit", "/tmp/a\x1b[31m\nb: 가 \ud800")
    assert capsys.readouterr().err == "mam: /tmp/a\\x1b[31m\\nb: 가 \\ud800\n"
    monkeypatch.setattr(logging.getLogger("mam.audit"), "disabled", True)
    warn("mam.audit", "not wanted")
    monkeypatch.setattr("sys.stderr", None)
    warn("mam.audit", "nowhere to go")
    assert capsys.readouterr().err == ""


def test_the_next_act_catches_up(files: Registry, logs_dir: Path) -> None:
    first = files.register(prompt="p", agent="a").job
    aside = logs_dir.with_name("aside")
    logs_dir.rename(aside)
    logs_dir.write_text("in the way")
    files.pick("a", owner="me")
    second = files.register(prompt="q", agent="a").job
    files.fail(first.job_id, reason="no", attempt=1)
    logs_dir.unlink()
    aside.rename(logs_dir)
    assert events_of(logs_dir, first.job_id) == ["registered"]
    files.cancel(second.job_id)
    assert history_in_log(logs_dir) == history_in(files.store)


@pytest.mark.parametrize("obstacle", ["file", "link", "link to events", "pipe"])
def test_one_broken_history_does_not_stop_the_others(registry: Registry, logs_dir: Path, obstacle: str) -> None:
    elsewhere = logs_dir.parent / "elsewhere"
    elsewhere.mkdir()
    broken, sound = registry.register(prompt="p", agent="a").job, registry.register(prompt="q", agent="a").job
    folder, aside = logs_dir / broken.job_id, logs_dir / ".aside"
    folder.rename(aside)
    if obstacle == "file":
        folder.write_text("in the way")
    elif obstacle == "link":
        folder.symlink_to(elsewhere)
    else:
        folder.mkdir()
        if obstacle == "pipe":
            os.mkfifo(folder / "events.ndjson")
        else:
            (folder / "events.ndjson").symlink_to(elsewhere / "events.ndjson")
    registry.pick("a", owner="me")
    registry.cancel(sound.job_id)
    assert events_of(logs_dir, sound.job_id) == ["registered", "status_changed", "published"]
    assert list(elsewhere.iterdir()) == []

    if obstacle in ("file", "link"):
        folder.unlink()
    else:
        (folder / "events.ndjson").unlink()
        folder.rmdir()
    aside.rename(folder)
    registry.register(prompt="r", agent="a")
    assert history_in_log(logs_dir) == history_in(registry.store)


def test_when_too_many_are_broken_nothing_is_skipped(
    logs_dir: Path, store: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list of those left behind is bounded; beyond it the copy waits instead of losing lines."""
    monkeypatch.setattr(append, "BEHIND_LIMIT", 2)
    bare = Registry(store)
    jobs = [bare.register(prompt="p", agent="a").job.job_id for _ in range(4)]
    logs_dir.mkdir()
    for job_id in jobs[:3]:
        (logs_dir / job_id).write_text("in the way")
    log = AuditLog(str(logs_dir))
    log.follow(store)
    assert not (logs_dir / jobs[3]).exists()
    for job_id in jobs[:3]:
        (logs_dir / job_id).unlink()
    log.follow(store)
    assert history_in_log(logs_dir) == history_in(store)


def test_an_act_does_not_wait_long_for_the_lock_of_the_log(
    logs_dir: Path, store: Memory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sync, "LOCK_SECONDS", 0.01)
    registry = Registry(store, AuditLog(str(logs_dir)))
    first = registry.register(prompt="p", agent="a").job
    with (logs_dir / ".lock").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        registry.pick("a", owner="me")
        registry.cancel(first.job_id)
        assert events_of(logs_dir, first.job_id) == ["registered"]
    assert len(caplog.records) == 1
    registry.register(prompt="q", agent="a")
    assert history_in_log(logs_dir) == history_in(store)


def test_the_wait_is_short_and_not_repeated(logs_dir: Path, store: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound itself, without measuring time: what each act is ready to wait."""
    waits: list[float] = []

    class Watched(AuditLogLock):
        def __init__(self, directory: str, wait_seconds: float) -> None:
            waits.append(wait_seconds)
            super().__init__(directory, 0.0)

    monkeypatch.setattr(sync, "AuditLogLock", Watched)
    registry = Registry(store, AuditLog(str(logs_dir)))
    registry.register(prompt="p", agent="a")
    with (logs_dir / ".lock").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        registry.register(prompt="p", agent="a")
        registry.register(prompt="p", agent="a")
    registry.register(prompt="p", agent="a")
    registry.register(prompt="p", agent="a")
    assert waits == [2.0, 2.0, 0.0, 0.0, 2.0]


def test_a_store_whose_journal_cannot_be_read_is_not_made_worse(logs_dir: Path) -> None:
    class Damaged(Memory):
        def entries(self, cursor: str | None) -> Iterator[Entry]:
            raise StoreUnavailable(store="here", problem="its journal cannot be read")

    job = Registry(Damaged(), AuditLog(str(logs_dir))).register(prompt="p", agent="a").job
    assert job.status == "pending"


def test_a_lock_file_that_is_a_link_is_not_followed(registry: Registry, logs_dir: Path) -> None:
    logs_dir.mkdir()
    target = logs_dir.parent / "target"
    (logs_dir / ".lock").symlink_to(target)
    registry.register(prompt="p", agent="a")
    assert not target.exists()


def test_a_hostile_id_reaches_no_path(logs_dir: Path, caplog: pytest.LogCaptureFixture) -> None:
    AuditLog(str(logs_dir)).append_local("../outside", {"event": "received"})
    assert not (logs_dir.parent / "outside").exists()
    assert "not a job id" in caplog.text


def test_a_rejection_is_logged_even_as_the_first_line(logs_dir: Path, store: Memory) -> None:
    AuditLog(str(logs_dir)).refused(store, "abc", "complete", "lost")
    assert [line["why"] for line in history_lines(logs_dir, "abc")] == ["lost"]


def test_no_secret_reaches_the_log(
    tmp_path: Path, files: Registry, logs_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Canaries in an old record, in the environment, and in a record that an old script mirrors by hand."""
    canaries = ["canary-token-1", "canary-password-2", "canary-env-3"]
    monkeypatch.setenv("MQTT_PASSWORD", canaries[2])
    record = {
        "schema_version": 1, "job_id": "abc12345", "status": "running", "created_at": "2026-06-19T09:30:00Z",
        "prompt": "p", "agent": "a", "agent_session": "a", "auth_token": canaries[0],
        "broker": {"host": "h", "port": 1, "tls": False, "username": "u", "password": canaries[1]},
    }  # fmt: skip
    (tmp_path / "jobs" / "abc12345.json").write_text(json.dumps(record))
    adopt_files(files.store)
    files.publish("abc12345", event="progress", detail="half")
    files.complete("abc12345")
    AuditLog(str(logs_dir)).begin_local("byhand", record, "2026-06-19T09:30:00Z")
    assert events_of(logs_dir, "abc12345")[-1] == "published"
    assert json.loads((logs_dir / "byhand" / "meta.json").read_bytes())["broker"]["username"] == "u"
    for path in logs_dir.rglob("*"):
        if path.is_file():
            assert not [canary for canary in canaries if canary in path.read_text(encoding="utf-8")], path
