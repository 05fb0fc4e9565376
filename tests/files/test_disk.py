"""A disk that is full, read-only or failing: one clear error, nothing changed, and all is well when it recovers."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from mam.errors import StoreUnavailable
from mam.jobs.status import Status
from mam.registry import Registry
from mam.stores.port import Query
from tests.cli.command import Mam
from tests.disks import fill
from tests.files.conftest import StoreDir, old_record
from tests.files.invariants import check


def test_a_full_disk_refuses_acts_whole_and_recovers_when_there_is_room(small_disk: Path) -> None:
    store_dir = StoreDir(small_disk / "jobs")
    registry = store_dir.open()
    running = registry.register(prompt="p", agent="codex").job.job_id
    assert registry.pick("codex", owner="me") is not None
    ballast = fill(small_disk)
    acts: list[Callable[[], object]] = [
        lambda: registry.register(prompt="x" * 10_000, agent="codex"),
        lambda: registry.complete(running, attempt=1, result="y" * 10_000),
        lambda: store_dir.open().register(prompt="z" * 10_000, agent="codex"),
    ]
    before = store_dir.snapshot()
    for act in acts:
        with pytest.raises(StoreUnavailable, match=r"No space left|full"):
            act()
        after = store_dir.snapshot()
        assert {name: after[name] for name in before} == before
    assert [job.job_id for job in store_dir.open().select(Query())] == [running]
    assert registry.explain(running)[0].status is Status.RUNNING
    ballast.unlink()
    assert registry.complete(running, attempt=1, result="y").status is Status.COMPLETED
    assert registry.register(prompt="again", agent="codex").created
    check(store_dir, store_dir.open())
    store_dir.close()


READING: tuple[tuple[str, ...], ...] = (
    ("list",),
    ("get", "JOB"),
    ("result", "JOB"),
    ("logs", "JOB"),
    ("explain", "JOB"),
)
WRITING: tuple[tuple[str, ...], ...] = (("register", "p", "--agent", "a"), ("pick", "-s", "codex"), ("complete", "JOB"))


def read_and_refused(store_dir: StoreDir, mam: Mam, job_id: str) -> None:
    """Verbs that read work, and verbs that write fail with one line."""
    for verb in READING:
        ran = mam(*(job_id if word == "JOB" else word for word in verb), "--store", str(store_dir.path))
        assert ran.code == 0, (verb, ran.stderr)
        assert "Traceback" not in ran.stderr
    for verb in WRITING:
        ran = mam(*(job_id if word == "JOB" else word for word in verb), "--store", str(store_dir.path))
        assert (ran.code, len(ran.stderr.splitlines())) == (9, 1), (verb, ran.stderr)


@pytest.fixture
def ended(small_disk: Path) -> tuple[StoreDir, str]:
    store_dir = StoreDir(small_disk / "jobs")
    registry = store_dir.open()
    job_id = registry.register(prompt="p", agent="codex").job.job_id
    registry.publish(job_id, event="progress", detail="half")
    registry.complete(job_id, result="done")
    registry.register(prompt="p", agent="codex")
    store_dir.close()
    return store_dir, job_id


@pytest.mark.parametrize("log", ["with a log", "without a log"])
def test_a_disk_that_is_mounted_read_only_can_be_read(
    ended: tuple[StoreDir, str], small_disk: Path, mam: Mam, log: str
) -> None:
    store_dir, job_id = ended
    database = store_dir.path / ".store" / "registry.db"
    if log == "without a log":
        with_log = apsw.Connection(str(database))
        with_log.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        with_log.close()
    assert Path(f"{database}-wal").exists() == (log == "with a log")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    try:
        read_and_refused(store_dir, mam, job_id)
    finally:
        subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    assert store_dir.open().get(job_id).status is Status.COMPLETED
    store_dir.close()


@pytest.mark.parametrize("index", ["with its index", "without its index"])
def test_a_full_disk_can_be_read(ended: tuple[StoreDir, str], small_disk: Path, mam: Mam, index: str) -> None:
    store_dir, job_id = ended
    if index == "without its index":
        database = apsw.Connection(str(store_dir.path / ".store" / "registry.db"))
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        database.close()
    ballast = fill(small_disk)
    read_and_refused(store_dir, mam, job_id)
    ballast.unlink()
    check(store_dir, store_dir.open())
    store_dir.close()


def test_records_without_a_database_on_a_read_only_disk_are_refused_in_one_line(small_disk: Path, mam: Mam) -> None:
    store_dir = StoreDir(small_disk / "jobs")
    store_dir.rename_in("abc12345", old_record("abc12345"))
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    try:
        mam("list", "--store", str(store_dir.path)).failed(9, "cannot be written", "database")
    finally:
        subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)


def failing(name: str, code: int, nth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nth call of an os function fails, as strace would make it; the calls before and after do not."""
    real: Callable[..., Any] = getattr(os, name)
    left = [nth]

    def maybe(*arguments: Any, **options: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            raise OSError(code, os.strerror(code))
        return real(*arguments, **options)

    monkeypatch.setattr(os, name, maybe)


@pytest.mark.parametrize("call", ["open", "write", "fsync", "rename", "link"])
@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EMFILE])
def test_a_call_that_fails_leaves_the_act_done_or_not_done(
    store_dir: StoreDir, monkeypatch: pytest.MonkeyPatch, call: str, code: int
) -> None:
    job_id = store_dir.open().register(prompt="p", agent="codex").job.job_id
    for nth in range(1, 12):
        registry = store_dir.open()
        status = registry.get(job_id).status
        with monkeypatch.context() as patch:
            failing(call, code, nth, patch)
            try:
                done = _next(registry, job_id, status)
            except StoreUnavailable:  # and nothing else may reach the user
                done = None
        registry = store_dir.open()
        now = registry.get(job_id).status
        assert now is (done or status) or (done is None and now is not status)
        check(store_dir, registry)


def _next(registry: Registry, job_id: str, status: Status) -> Status:
    if status is Status.PENDING:
        claimed = registry.pick("codex", owner="me")
        assert claimed is not None
        return claimed.status
    return registry.release(job_id).status


def test_short_writes_are_finished(store_dir: StoreDir, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, bytes(data)[:7]))
    registry = store_dir.open()
    job_id = registry.register(prompt="whole", agent="codex").job.job_id
    registry.complete(job_id)
    monkeypatch.undo()
    check(store_dir, store_dir.open())
