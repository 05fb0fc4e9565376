"""Whoever waits hears of every commit, also of one that takes long, and of nothing else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import pytest

from mam.jobs.pause import Pause
from mam.stores.sqlite.waiting import Waiter

if TYPE_CHECKING:
    from tests.sqlite.conftest import Place

LONG = 20.0
"""Nobody here waits for that long, unless it is missed."""


PAUSE = "INSERT INTO pause (agent, label, made_at) VALUES ('shell', '', '2026-01-01T00:00:00Z')"


class Slow:
    """Somebody whose commits are synced when they are told to be."""

    def __init__(self, place: Place) -> None:
        self._written, self._may_sync = threading.Event(), threading.Event()
        slow = self

        class File(apsw.VFSFile):
            def xSync(self, flags: int) -> None:
                slow._written.set()
                assert slow._may_sync.wait(LONG)
                super().xSync(flags)

        class System(apsw.VFS):
            def __init__(self) -> None:
                super().__init__("slow", "unix")

            def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
                return File("unix", name, flags)

        self._system = System()
        self._database = apsw.Connection(str(place.path), flags=apsw.SQLITE_OPEN_READWRITE, vfs="slow")
        self._database.execute("PRAGMA synchronous = FULL").fetchall()
        self._database.setbusytimeout(10_000)
        self._thread = threading.Thread(target=self._database.execute, args=(PAUSE,))

    def write(self) -> None:
        """Behind this it is in the log, and nobody can read it."""
        self._thread.start()
        assert self._written.wait(LONG)

    def commit(self) -> None:
        self._may_sync.set()
        self._thread.join()

    def close(self) -> None:
        self._may_sync.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._database.close()


@pytest.fixture
def slow(place: Place) -> Iterator[Slow]:
    place.open().register(prompt="x", agent="shell")
    slow = Slow(place)
    yield slow
    slow.close()


class Sleeper:
    """Waits in a thread, and tells when it has looked in vain for some time."""

    def __init__(self, place: Place) -> None:
        store = place.open().store
        self._glance: Callable[[], tuple[str, int]] = store._glance  # type: ignore[attr-defined]
        self.cursor = store.end()
        self.looks, self._looked = 0, threading.Event()
        self.waiter = Waiter(str(place.path), self._look)

    def _look(self) -> tuple[str, int]:
        self.looks += 1
        if self.looks >= 6:
            self._looked.set()
        return self._glance()

    def hears_of(self, slow: Slow) -> bool:
        """What is in the log, and committed only when this has looked for it again and again."""
        heard: list[bool] = []
        self.looks = 0
        thread = threading.Thread(target=lambda: heard.append(self.waiter.wait(self.cursor, LONG)))
        thread.start()
        assert self._looked.wait(LONG)
        slow.commit()
        thread.join()
        return heard == [True]


@pytest.fixture
def sleeper(place: Place, slow: Slow) -> Iterator[Sleeper]:
    sleeper = Sleeper(place)
    yield sleeper
    sleeper.waiter.close()


def test_what_is_written_and_not_yet_committed_is_waited_for(slow: Slow, sleeper: Sleeper) -> None:
    slow.write()
    assert sleeper.hears_of(slow)


def test_also_by_who_has_given_up_in_between(slow: Slow, sleeper: Sleeper) -> None:
    slow.write()
    assert not sleeper.waiter.wait(sleeper.cursor, 0.001), "what stands in the log is nobody's yet"
    assert sleeper.hears_of(slow)


def test_what_is_committed_between_two_waits_is_heard_of_once(slow: Slow, sleeper: Sleeper) -> None:
    slow.write()
    slow.commit()
    assert sleeper.waiter.wait(sleeper.cursor, LONG)
    assert not sleeper.waiter.wait(sleeper.cursor, 0.05)


def test_a_pause_wakes_although_the_journal_does_not_tell_of_it(place: Place) -> None:
    mine, others = place.open(), place.open()
    cursor = mine.store.end()
    mine.store.wait(cursor, 0)
    assert not mine.store.wait(cursor, 0)
    others.pause(Pause(agent="shell", label=None, until=None, reason="enough", made_at="2026-01-01T00:00:00Z"))
    assert mine.store.wait(cursor, LONG)
    others.resume("shell", None)
    assert mine.store.wait(cursor, LONG)
    assert mine.store.end() == cursor


def test_a_log_that_is_begun_anew_still_wakes(place: Place) -> None:
    """Its file is emptied, or another takes its place."""
    mine, others = place.open(), place.open()
    for truncated in (False, True):
        cursor = mine.store.end()
        mine.store.wait(cursor, 0)
        with apsw.Connection(str(place.path)) as database:
            database.execute(
                "PRAGMA wal_checkpoint(TRUNCATE)" if truncated else "PRAGMA wal_checkpoint(RESTART)"
            ).fetchall()
        database.close()
        others.register(prompt="x", agent="shell")
        assert mine.store.wait(cursor, LONG)
        assert mine.store.end() != cursor


def test_nothing_is_left_beside_the_database(place: Place) -> None:
    registry = place.open()
    registry.register(prompt="x", agent="shell")
    place.close()
    assert [path.name for path in sorted(Path(place.path).parent.iterdir())] == ["jobs.db"]
