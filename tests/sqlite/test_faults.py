"""Killed anywhere, full, locked, forked, read for long: what was acknowledged is there, and all of it or none."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from mam.errors import StoreMissing, StoreUnavailable
from mam.jobs.status import Status
from mam.stores.port import Query
from mam.stores.sqlite.store import SqliteStore, create_sqlite_store
from mam.testing.conformance.base import check_journal, register_jobs
from mam.testing.races import RacePool
from mam.testing.tasks import LABEL, claim_all, wait_for_entries
from tests.disks import fill
from tests.sqlite.conftest import StoreFile

# -- kills -----------------------------------------------------------------------------------------------------------


def test_a_lock_of_a_killed_process_blocks_no_one(store_file: StoreFile) -> None:
    reader, writer = os.pipe()
    child = forked(lambda: hold_until_killed(store_file, writer))
    os.read(reader, 1)
    with pytest.raises(StoreUnavailable, match="locked"):
        store_file.open(lock_wait_seconds=0.05).sweep()
    store_file.close()
    os.kill(child, 9)
    os.waitpid(child, 0)
    assert store_file.open(lock_wait_seconds=5).register(prompt="p", agent="codex").created


def hold_until_killed(store_file: StoreFile, writer: int) -> None:
    database = apsw.Connection(str(store_file.path))
    database.execute("BEGIN IMMEDIATE")
    os.write(writer, b"held")
    threading.Event().wait()


def forked(do: Callable[[], object]) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the test runner has threads; the child uses none of them
        child = os.fork()
    if child == 0:
        try:
            os._exit(0 if do() is not False else 1)
        except BaseException:
            os._exit(2)
    return child


def exit_code(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


# -- settings, readers, checkpoints ------------------------------------------------------------------------------------


def test_the_log_is_written_ahead_and_synced_at_every_commit(store_file: StoreFile) -> None:
    database = store_file.open().store._cursor.connection  # type: ignore[attr-defined]
    assert database.pragma("journal_mode") == "wal"
    assert database.pragma("synchronous") == 2


def test_every_setting_is_made(store_file: StoreFile) -> None:
    """apsw stops at the first row of several statements, and `journal_mode` gives one."""
    database = store_file.open().store._cursor.connection  # type: ignore[attr-defined]
    assert database.pragma("foreign_keys") == 1


def test_on_macos_a_sync_reaches_the_disk(store_file: StoreFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """There a plain fsync leaves the data in the disk's own memory."""
    monkeypatch.setattr(sys, "platform", "darwin")
    database = store_file.open().store._cursor.connection  # type: ignore[attr-defined]
    assert (database.pragma("fullfsync"), database.pragma("checkpoint_fullfsync")) == (1, 1)


def test_the_sqlite_is_one_without_the_bug_that_resets_the_log() -> None:
    """Fixed in 3.51.3; see docs. The one of the system may be older, which is why mam brings its own."""
    assert tuple(map(int, apsw.sqlite_lib_version().split("."))) >= (3, 51, 3)


def test_a_long_reader_does_not_keep_the_log_from_being_cleared_afterwards(store_file: StoreFile) -> None:
    registry = store_file.open()
    reader = apsw.Connection(str(store_file.path))
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM job").fetchall()
    for _ in range(60):
        registry.register(prompt="x" * 100_000, agent="codex")
    log = Path(f"{store_file.path}-wal")
    grown = log.stat().st_size
    assert grown > 4_000_000, "the reader holds the log back, as it must"
    reader.execute("ROLLBACK")
    for _ in range(60):
        registry.register(prompt="x" * 100_000, agent="codex")
    assert log.stat().st_size <= grown + 500_000, "it goes on in the room that the reader gave back"
    reader.close()


def test_a_list_that_is_read_slowly_holds_nothing_back(store_file: StoreFile) -> None:
    registry = store_file.open()
    register_jobs(registry, 600)
    jobs = registry.select(Query())
    next(jobs)
    registry.register(prompt="meanwhile", agent="codex")
    other = apsw.Connection(str(store_file.path))
    busy, _log, _done = other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0]
    assert busy == 0
    assert sum(1 for _ in jobs) == 599
    other.close()


# -- forks and threads -------------------------------------------------------------------------------------------------


def test_a_store_opened_before_a_fork_works_in_both(store_file: StoreFile) -> None:
    registry = store_file.open()
    register_jobs(registry, job_id="before")
    assert exit_code(forked(lambda: register_jobs(registry, job_id="child") == ["child"])) == 0
    register_jobs(registry, job_id="after")
    assert [job.job_id for job in registry.select(Query())] == ["after", "child", "before"]
    check_journal(registry.store)


def test_what_a_child_writes_is_there_though_its_parent_closes_the_store_first(store_file: StoreFile) -> None:
    registry = store_file.open()
    register_jobs(registry, job_id="before")
    to_parent, from_child = os.pipe()
    to_child, from_parent = os.pipe()

    def child() -> None:
        register_jobs(registry, job_id="child-1")
        os.write(from_child, b".")
        os.read(to_child, 1)
        register_jobs(registry, job_id="child-2")

    process = forked(child)
    os.read(to_parent, 1)
    registry.store.close()
    os.write(from_parent, b".")
    assert exit_code(process) == 0
    assert [job.job_id for job in store_file.open().select(Query())] == ["child-2", "child-1", "before"]


def test_a_wait_works_in_a_forked_child(store_file: StoreFile) -> None:
    store = store_file.open().store
    offset = store.end_offset()
    store.wait(offset, 0.01)
    assert exit_code(forked(lambda: store.wait(offset, 0.01) in (True, False))) == 0


def test_threads_share_one_store(store_file: StoreFile) -> None:
    registry = store_file.open()
    jobs = register_jobs(registry, 60)
    with RacePool(lambda: registry.store, processes=False) as pool:
        got = pool.race([claim_all] * 8)
    assert sorted(claim for some in got for claim in some) == sorted((job_id, 1) for job_id in jobs)
    check_journal(registry.store)


def test_two_threads_that_wait_are_both_woken(store_file: StoreFile) -> None:
    store, other = store_file.open().store, store_file.open()
    store.wait(store.end_offset(), 0.01)
    offset, woken = store.end_offset(), list[bool]()
    threads = [threading.Thread(target=lambda: woken.append(store.wait(offset, 2.0))) for _ in range(2)]
    for thread in threads:
        thread.start()
    register_jobs(other)
    for thread in threads:
        thread.join()
    assert woken == [True, True]


def test_a_thread_that_waits_does_not_keep_others_from_working(store_file: StoreFile) -> None:
    registry = store_file.open()
    with RacePool(lambda: registry.store, processes=False) as pool:
        sleeper = pool.start(lambda store, report: wait_for_entries(store, report, rounds=5))
        for _ in range(5):
            sleeper.report()
            register_jobs(registry)
        assert sleeper.result() == 5


# -- disks -------------------------------------------------------------------------------------------------------------


def test_a_full_disk_refuses_acts_whole_and_recovers_when_there_is_room(small_disk: Path) -> None:
    store_file = StoreFile(small_disk / "jobs.db")
    registry = store_file.open()
    running = register_jobs(registry)[0]
    assert registry.pick(LABEL, owner="me") is not None
    ballast = fill(small_disk)
    acts: list[Callable[[], object]] = [
        lambda: registry.register(prompt="x" * 10_000, agent="codex"),
        lambda: registry.complete(running, attempt=1, result="y" * 10_000),
        lambda: store_file.open().register(prompt="z" * 10_000, agent="codex"),
    ]
    for act in acts:
        with pytest.raises(StoreUnavailable, match="the disk is full"):
            act()
        assert [job.status for job in registry.select(Query())] == [Status.RUNNING]
    ballast.unlink()
    assert registry.complete(running, attempt=1, result="y").status is Status.COMPLETED
    assert registry.register(prompt="again", agent="codex").created
    check_journal(store_file.open().store)
    store_file.close()


def test_no_room_for_what_those_who_have_it_open_share(small_disk: Path) -> None:
    """SQLite calls that an error of the disk."""
    store_file = StoreFile(small_disk / "jobs.db")
    register_jobs(store_file.open())
    store_file.close()
    ballast = fill(small_disk)
    with pytest.raises(StoreUnavailable, match="the disk is full"):
        store_file.open()
    ballast.unlink()
    register_jobs(store_file.open())
    store_file.close()


def test_a_full_disk_at_creation_is_reported_and_a_later_init_works(small_disk: Path) -> None:
    ballast = fill(small_disk)
    path = small_disk / "jobs.db"
    with pytest.raises(StoreUnavailable, match=r"full|disk"):
        create_sqlite_store(str(path))
    with pytest.raises((StoreUnavailable, StoreMissing)):
        SqliteStore(str(path))
    ballast.unlink()
    assert create_sqlite_store(str(path))
    SqliteStore(str(path)).close()


def test_a_disk_that_became_read_only_is_reported(small_disk: Path) -> None:
    store_file = StoreFile(small_disk / "jobs.db")
    (job_id,) = register_jobs(store_file.open())
    store_file.close()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    try:
        with pytest.raises(StoreUnavailable) as caught:
            register_jobs(store_file.open())
        assert "\n" not in str(caught.value)
    finally:
        store_file.close()
        subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    assert store_file.open().get(job_id).status is Status.PENDING
    store_file.close()
