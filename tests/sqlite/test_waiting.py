"""Every commit wakes a waiting process, and nothing else does."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import apsw
import pytest

from mam.jobs.pause import Pause
from mam.stores.sqlite.database import open_database
from mam.stores.sqlite.store import SqliteStore
from tests.waiting import await_that

if TYPE_CHECKING:
    from tests.sqlite.conftest import StoreFile

LONG = 20.0
"""No test waits for that long, unless a commit wakes no process."""


def test_a_waiting_process_misses_none_of_many_commits(store_file: StoreFile) -> None:
    mine, others = store_file.open(), store_file.open()
    offset, timely = mine.store.end_offset(), list[bool]()

    def listen() -> None:
        heard = offset
        while len(list(mine.store.entries(offset))) < 60:
            timely.append(mine.store.wait(heard, LONG))
            heard = mine.store.end_offset()

    mine.store.wait(offset, 0)
    thread = threading.Thread(target=listen)
    thread.start()
    for _ in range(60):
        others.register(prompt="x", agent="shell")
    thread.join()
    assert all(timely)


def test_a_pause_wakes_followers_without_a_journal_entry(store_file: StoreFile) -> None:
    mine, others = store_file.open(), store_file.open()
    offset = mine.store.end_offset()
    mine.store.wait(offset, 0)
    assert not mine.store.wait(offset, 0)
    others.pause(Pause(agent="shell", label=None, until=None, reason="enough", made_at="2026-01-01T00:00:00Z"))
    assert mine.store.wait(offset, LONG)
    others.resume("shell", None)
    assert mine.store.wait(offset, LONG)
    assert mine.store.end_offset() == offset


def test_closing_a_store_ends_the_wait_of_another_thread(store_file: StoreFile) -> None:
    store = store_file.open().store
    assert isinstance(store, SqliteStore)
    offset, ended = store.end_offset(), list[bool | Exception]()

    def wait() -> None:
        try:
            store.wait(offset, 0)
            ended.append(store.wait(offset, LONG))
        except Exception as error:
            ended.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    await_that(lambda: any(watch._waits for watch in store._watches.values()))
    store.close()
    thread.join(LONG / 2)
    assert ended == [False]


def test_a_restarted_log_still_wakes_followers(store_file: StoreFile) -> None:
    mine, others = store_file.open(), store_file.open()
    for how in ("RESTART", "TRUNCATE"):
        offset = mine.store.end_offset()
        mine.store.wait(offset, 0)
        with apsw.Connection(str(store_file.path)) as database:
            database.execute(f"PRAGMA wal_checkpoint({how})").fetchall()
        database.close()
        others.register(prompt="x", agent="shell")
        assert mine.store.wait(offset, LONG)
        assert mine.store.end_offset() != offset


def test_opening_waits_for_a_writer_while_it_changes_the_journal_mode(
    store_file: StoreFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite calls no busy handler there: processes that opened a new database at once failed after a millisecond."""
    store_file.open().store.close()
    path = str(store_file.path)
    writer = apsw.Connection(path)
    assert writer.execute("PRAGMA journal_mode = DELETE").fetchall() == [("delete",)]
    writer.execute("BEGIN IMMEDIATE")
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if writer.in_transaction:
            writer.execute("COMMIT")

    monkeypatch.setattr("mam.stores.sqlite.database.time.sleep", pause)
    database = open_database(path, wait_seconds=10)
    assert database.execute("PRAGMA journal_mode").fetchall() == [("wal",)]
    assert pauses
    database.close()
    writer.close()
