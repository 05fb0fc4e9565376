"""Whoever waits is woken, and nobody is rung for in vain."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mam.stores.sqlite import bell as bell_module
from mam.stores.sqlite.bell import Bell
from mam.stores.watch import Watch, rung

if TYPE_CHECKING:
    from tests.sqlite.conftest import Place

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only inotify tells that a file was read")


class Time:
    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    time = Time()
    monkeypatch.setattr(bell_module, "time", time)
    return time


@pytest.fixture
def ear(tmp_path: Path) -> Iterator[Watch]:
    """Hears every ring, and promises nothing."""
    watch = Watch(str(tmp_path), rung("bell"))
    yield watch
    watch.close()


@pytest.fixture
def bell(tmp_path: Path) -> Bell:
    return Bell(str(tmp_path / "bell"))


def stayed(bell: Bell, time: Time) -> Bell:
    """Of a process that has rung for more than a second."""
    bell.ring()
    time.now += 2
    bell.ring()
    return bell


def is_heard(ear: Watch) -> bool:
    return ear.wait(0)


def test_a_command_rings_whether_somebody_listens_or_not(bell: Bell, time: Time, ear: Watch) -> None:
    bell.ring()
    assert is_heard(ear)


def test_who_stays_rings_for_nobody_no_more(bell: Bell, time: Time, ear: Watch) -> None:
    stayed(bell, time)
    is_heard(ear)
    bell.ring()
    assert not is_heard(ear)


def test_who_listens_is_rung_for(bell: Bell, time: Time, ear: Watch, tmp_path: Path) -> None:
    stayed(bell, time)
    Bell(str(tmp_path / "bell")).listen(5)
    is_heard(ear)
    bell.ring()
    assert is_heard(ear)


def test_who_has_stopped_listening_is_not(bell: Bell, time: Time, ear: Watch, tmp_path: Path) -> None:
    stayed(bell, time)
    Bell(str(tmp_path / "bell")).listen(5)
    time.now += 4
    bell.ring()
    assert is_heard(ear)
    time.now += 300
    bell.ring()
    assert not is_heard(ear)


def test_who_goes_on_listening_is_heard_of_in_time(bell: Bell, time: Time, ear: Watch, tmp_path: Path) -> None:
    listener = Bell(str(tmp_path / "bell"))
    stayed(bell, time)
    for _ in range(20):
        listener.listen(30)
        time.now += 29.9
        is_heard(ear)
        bell.ring()
        assert is_heard(ear)


def test_a_bell_that_was_removed_is_hung_again_and_rings_for_those_who_listened_before(
    bell: Bell, time: Time, ear: Watch, tmp_path: Path
) -> None:
    stayed(bell, time)
    Bell(str(tmp_path / "bell")).listen(30)
    (tmp_path / "bell").unlink()
    time.now += 2
    stayed(bell, time)
    is_heard(ear)
    bell.ring()
    assert is_heard(ear)


def test_a_bell_of_an_older_program_will_do(bell: Bell, time: Time, ear: Watch, tmp_path: Path) -> None:
    (tmp_path / "bell").write_bytes(b"\n")
    stayed(bell, time)
    is_heard(ear)
    bell.ring()
    assert not is_heard(ear)
    bell.listen(1)
    bell.ring()
    assert is_heard(ear)


def test_a_store_that_stays_wakes_whoever_waits(place: Place) -> None:
    mine, others = place.open(), place.open()
    mine.register(prompt="x", agent="shell", job_id="one")
    mine.store._bell._due = 0.0  # type: ignore[attr-defined] # a second is over
    mine.register(prompt="x", agent="shell", job_id="two")
    cursor = others.store.end()
    assert others.store.wait(cursor, 0), "whoever has just begun to watch looks once more"
    assert not others.store.wait(cursor, 0)
    assert mine.store._bell._until is not None  # type: ignore[attr-defined]
    mine.cancel("one")
    (watch,) = others.store._watches.values()  # type: ignore[attr-defined]
    assert watch.wait(10), "it was rung for"
