"""Followers of the journal see what is durable, all of it, and do not wait for the process that is acting."""

from __future__ import annotations

from threading import Thread
from typing import TYPE_CHECKING

import pytest

from mam.jobs.pause import Pause
from mam.stores.files.lock import registry_lock
from mam.stores.files.store import FilesStore
from tests.files.conftest import StoreDir

if TYPE_CHECKING:
    from collections.abc import Iterator

LONG = 60.0
"""Only so that a broken test ends."""


class Follower:
    """Another process's view: a store of its own that has been looked at once."""

    def __init__(self, store_dir: StoreDir) -> None:
        self.store = FilesStore(str(store_dir.path), clock=store_dir.clock, lock_wait_seconds=0.05)
        self.offset = self.store.end_offset()
        while self.store.wait(self.offset, 0):
            pass

    def numbers(self) -> list[int]:
        return [entry.number for entry in self.store.entries(self.offset)]


@pytest.fixture
def follower(store_dir: StoreDir) -> Iterator[Follower]:
    store_dir.open().register(prompt="x", agent="codex")
    found = Follower(store_dir)
    yield found
    found.store.close()


def test_committed_acts_can_be_read_while_the_lock_is_held(store_dir: StoreDir, follower: Follower) -> None:
    store_dir.open().register(prompt="y", agent="codex")
    found: list[list[int]] = []
    with registry_lock(str(store_dir.path)):
        thread = Thread(target=lambda: found.append(follower.numbers()))  # the lock is a thread's
        thread.start()
        thread.join()
    assert found == [[2]]


def test_an_act_wakes_a_follower(store_dir: StoreDir, follower: Follower) -> None:
    store_dir.open().register(prompt="y", agent="codex")
    assert follower.store.wait(follower.offset, LONG)


def test_a_pause_wakes_a_follower(store_dir: StoreDir, follower: Follower) -> None:
    store_dir.open().pause(Pause(agent="codex", reason="limit"))
    assert follower.store.wait(follower.offset, LONG)


def test_without_new_entries_no_follower_wakes(follower: Follower) -> None:
    assert not follower.store.wait(follower.offset, 0.05)


def test_an_entry_already_read_wakes_no_follower(store_dir: StoreDir, follower: Follower) -> None:
    store_dir.open().register(prompt="y", agent="codex")
    *_, last = follower.store.entries(follower.offset)
    while follower.store.wait(last.offset, 0):
        pass
    assert not follower.store.wait(last.offset, 0.2)


def test_an_edit_of_a_record_file_is_no_entry(store_dir: StoreDir, follower: Follower) -> None:
    job_id = follower.store.ids_with_prefix("", 1)[0]
    store_dir.edit(job_id, lambda fields: fields.update(status="cancelled"))
    assert follower.numbers() == []
    assert follower.store.get(job_id).status == "pending"
