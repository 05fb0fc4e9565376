"""Who prepares for what is being written is given only what has become durable."""

from __future__ import annotations

import json
import os
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from mam.bus.messages import Post
from mam.bus.settings import Broker
from mam.stores.files.frames import frame, unframe
from mam.stores.files.lock import registry_lock
from mam.stores.files.store import FilesStore
from tests.files.conftest import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mam.stores.port import Entry

LONG = 60.0
"""Only so that a broken test ends."""


class Preparing:
    """Another process's view, which hears early of what comes."""

    def __init__(self, place: Place) -> None:
        self.store = FilesStore(str(place.path), clock=place.clock)
        self.seen: SimpleQueue[Entry] = SimpleQueue()
        self.store.coming = self.seen.put
        self.cursor = self.store.end()
        self.given: SimpleQueue[list[Entry]] = SimpleQueue()
        self._ready: SimpleQueue[None] = SimpleQueue()
        self._thread = Thread(target=self._follow)
        self._thread.start()
        self._ready.get(timeout=LONG)

    def _follow(self) -> None:
        while self.store.wait(self.cursor, 0):
            pass
        self._ready.put(None)
        entries: list[Entry] = []
        while not entries and self.store.wait(self.cursor, LONG):
            entries = list(self.store.entries(self.cursor))
        self.given.put(entries)

    def end(self) -> None:
        self._thread.join(LONG)
        self.store.close()


@pytest.fixture
def job(place: Place) -> str:
    return place.open().register(prompt="x", agent="codex").job.job_id


@pytest.fixture
def preparing(place: Place, job: str) -> Iterator[Preparing]:
    place.open().publish(job, event="progress", detail="before")
    found = Preparing(place)
    yield found
    found.end()


def half_written(place: Place, change: Callable[[dict[str, Any]], None]) -> Callable[[], None]:
    """A frame as of a writer that waits for the disk; what comes back takes it away, as if its sync had failed."""
    journal = place.path / ".store" / "journal.log"
    before = journal.read_bytes()
    entries = unframe(before.splitlines(keepends=True)[-1])
    assert isinstance(entries, list)
    entries[0]["number"] += 1
    change(entries[0]["lines"][0]["payload"])
    with journal.open("ab") as file:
        file.write(frame(entries))
    return lambda: os.truncate(journal, len(before))


def details(entries: list[Entry]) -> list[str]:
    return [line["payload"]["detail"] for entry in entries for line in entry.lines]


def test_what_was_foreseen_is_given_when_it_has_happened(place: Place, job: str, preparing: Preparing) -> None:
    place.open().publish(job, event="progress", detail="now")

    assert details(preparing.given.get(timeout=LONG)) == ["now"]


def test_what_its_writer_took_back_is_not_given(place: Place, job: str, preparing: Preparing) -> None:
    with registry_lock(str(place.path)):
        take_back = half_written(place, lambda payload: payload.update(detail="nev"))
        assert details([preparing.seen.get(timeout=LONG)]) == ["nev"]
        assert preparing.given.empty()
        take_back()
    place.open().publish(job, event="progress", detail="now")  # as many bytes, in the same place

    assert details(preparing.given.get(timeout=LONG)) == ["now"]


def test_nobody_is_asked_about_a_job_that_is_not_known_yet(place: Place, job: str) -> None:
    registry = place.open()
    cursor = registry.store.end()
    registry.publish(job, event="progress", detail="one")
    (entry,) = registry.store.entries(cursor)
    other = FilesStore(str(place.path), lock_wait_seconds=0)
    post = Post(other, Broker(host="127.0.0.1", port=1883), print)
    early: list[object] = []

    def prepare() -> None:
        try:
            early.append(post.early(entry))
        except BaseException as error:
            early.append(error)

    with registry_lock(str(place.path)):  # as its writer does
        thread = Thread(target=prepare)
        thread.start()
        thread.join()
    made = list(post.messages(entry))
    other.close()

    assert early == [[]]
    assert [json.loads(message.payload)["detail"] for message in made] == ["one"]
    assert post.early(entry) == made
