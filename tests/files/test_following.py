"""Those who follow the journal see what is durable, all of it, and do not wait for whoever is still acting."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from mam.errors import StoreUnavailable
from mam.stores.files.lock import registry_lock
from mam.stores.files.mark import NAME, Mark, MarkFile
from mam.stores.files.store import FilesStore
from tests.files.conftest import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LONG = 60.0
"""Only so that a broken test ends."""


class Follower:
    """Another process's view: a store of its own that has been looked at once."""

    def __init__(self, place: Place) -> None:
        self.store = FilesStore(str(place.path), clock=place.clock, lock_wait_seconds=0.05)
        self.cursor = self.store.end()
        while self.store.wait(self.cursor, 0):
            pass

    def numbers(self) -> list[int]:
        return [entry.number for entry in self.store.entries(self.cursor)]


@pytest.fixture
def follower(place: Place) -> Iterator[Follower]:
    place.open().register(prompt="x", agent="codex")
    found = Follower(place)
    yield found
    found.store.close()


def locked_by_another(place: Place, look: Callable[[], list[int]]) -> list[int]:
    """What is seen while somebody else holds the registry's lock, and is in no hurry."""
    found: list[list[int] | StoreUnavailable] = []

    def do() -> None:
        try:
            found.append(look())
        except StoreUnavailable as away:
            found.append(away)

    with registry_lock(str(place.path)):
        thread = Thread(target=do)  # the lock is a thread's
        thread.start()
        thread.join()
    if isinstance(found[0], StoreUnavailable):
        raise found[0]
    return found[0]


def mark_of(place: Place) -> Path:
    return place.path / ".store" / NAME


def test_what_is_committed_is_read_while_somebody_holds_the_lock(place: Place, follower: Follower) -> None:
    place.open().register(prompt="y", agent="codex")

    assert locked_by_another(place, follower.numbers) == [2]


def test_what_is_written_and_not_yet_synced_is_not_read(place: Place, follower: Follower) -> None:
    journal = place.path / ".store" / "journal.log"
    frame = journal.read_bytes().splitlines(keepends=True)[-1]
    with journal.open("ab") as file:
        file.write(frame)  # a writer between its write and its sync looks so

    with pytest.raises(StoreUnavailable):
        locked_by_another(place, follower.numbers)


def beside(mark: Path, first: int, offset: int) -> None:
    MarkFile(str(mark.parent)).prepared(Mark(first=first, offset=offset, directory_ns=-1))()


def spoil(mark: Path, how: str, end: int) -> None:
    match how:
        case "empty":
            mark.write_bytes(b"")
        case "noise":
            mark.write_bytes(os.urandom(96))
        case "changed":
            mark.write_bytes(mark.read_bytes().replace(b"1", b"7", 1))
        case "old":
            beside(mark, 1, 10)
        case "ahead":
            beside(mark, 1, end + 1000)
        case "another's":
            beside(mark, 99, end)
        case _:
            mark.unlink()
            replace(mark, how)


def replace(mark: Path, how: str) -> None:
    if how == "a link":
        mark.symlink_to("/dev/zero")
    elif how == "a pipe":
        os.mkfifo(mark)
    elif how == "a directory":
        mark.mkdir()


@pytest.mark.parametrize(
    "how", ["gone", "empty", "noise", "changed", "old", "ahead", "another's", "a link", "a pipe", "a directory"]
)
def test_a_mark_that_is_not_right_is_not_believed(place: Place, follower: Follower, how: str) -> None:
    registry = place.open()
    registry.register(prompt="y", agent="codex")
    spoil(mark_of(place), how, os.path.getsize(place.path / ".store" / "journal.log"))

    assert follower.numbers() == [2]
    registry.register(prompt="z", agent="codex")
    assert follower.numbers() == [2, 3]


def test_an_act_wakes_whoever_follows(place: Place, follower: Follower) -> None:
    place.open().register(prompt="y", agent="codex")

    assert follower.store.wait(follower.cursor, LONG)


def test_an_act_wakes_also_when_somebody_has_removed_the_mark(place: Place, follower: Follower) -> None:
    mark_of(place).unlink()
    while follower.store.wait(follower.cursor, 0):
        pass
    place.open().register(prompt="y", agent="codex")

    assert follower.store.wait(follower.cursor, LONG)


def test_nothing_new_is_no_news(follower: Follower) -> None:
    assert not follower.store.wait(follower.cursor, 0.05)


def test_what_was_read_already_wakes_nobody(place: Place, follower: Follower) -> None:
    place.open().register(prompt="y", agent="codex")
    *_, last = follower.store.entries(follower.cursor)

    assert not follower.store.wait(last.cursor, 0.2)


@pytest.mark.parametrize("others", ["rename", "edit in place", "removal", "pause"])
def test_what_others_do_wakes_whoever_follows(place: Place, follower: Follower, others: str) -> None:
    job_id = follower.store.ids_with_prefix("", 1)[0]
    file = place.file(job_id)
    match others:
        case "rename":
            place.edit(job_id, lambda fields: fields.update(status="cancelled"))
        case "edit in place":
            file.write_bytes(file.read_bytes().replace(b"pending", b"cancelled"))
        case "removal":
            file.unlink()
        case "pause":
            place.open().resume("codex", None)

    assert follower.store.wait(follower.cursor, LONG)


@pytest.mark.parametrize("others", ["rename", "edit in place", "pause"])
def test_what_others_do_right_behind_an_act_is_not_lost_in_its_noise(
    place: Place, follower: Follower, others: str
) -> None:
    job_id = follower.store.ids_with_prefix("", 1)[0]
    registry = place.open()
    registry.register(prompt="y", agent="codex")
    assert follower.store.wait(follower.cursor, LONG)
    *_, last = follower.store.entries(follower.cursor)
    file = place.file(job_id)
    match others:
        case "rename":
            place.edit(job_id, lambda fields: fields.update(status="cancelled"))
        case "edit in place":
            file.write_bytes(file.read_bytes().replace(b"pending", b"cancelled"))
        case "pause":
            registry.resume("codex", None)

    assert follower.store.wait(last.cursor, LONG)


def test_a_journal_that_was_put_in_the_place_of_another_is_read_anew(place: Place, follower: Follower) -> None:
    registry = place.open()
    registry.register(prompt="y", agent="codex")
    assert follower.numbers() == [2]
    journal = place.path / ".store" / "journal.log"
    copy = journal.with_name("copy")
    copy.write_bytes(journal.read_bytes())
    copy.rename(journal)

    registry.register(prompt="z", agent="codex")
    assert follower.numbers() == [2, 3]


def test_what_another_renamed_in_is_in_the_journal_when_a_follower_has_been_woken(
    place: Place, follower: Follower
) -> None:
    job_id = follower.store.ids_with_prefix("", 1)[0]
    place.edit(job_id, lambda fields: fields.update(status="cancelled"))
    assert follower.store.wait(follower.cursor, LONG)

    (entry,) = follower.store.entries(follower.cursor)
    assert entry.fields is not None
    assert entry.fields["status"] == "cancelled"
