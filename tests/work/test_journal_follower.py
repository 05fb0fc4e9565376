"""The worker's follower of the journal, also when the store is removed and created again."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from mam.registry import Registry
from mam.stores.files.store import FilesStore, create_files_store
from mam.work.journal_follower import JournalFollower
from tests.waiting import await_that
from tests.work.support import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mam.jobs.record import Json
    from mam.stores.interest import Interest
    from mam.stores.port import Store


class Counted(FilesStore):
    """A store that counts how often its end was read, and how often and where a thread waited."""

    looks = waits = 0
    waits_at: str | None = None

    def end_offset(self) -> str:
        self.looks += 1
        return super().end_offset()

    def wait(self, offset: str, timeout: float, interest: Interest | None = None) -> bool:
        self.waits += 1
        self.waits_at = offset
        return super().wait(offset, timeout, interest)


class Reader:
    """A follower that needs nothing that time decides, like the inbox."""

    def __init__(self, path: Path) -> None:
        self.store = Counted(str(path))
        self.told: list[dict[str, Json | None]] = []
        self.news = JournalFollower(self.store, None, self.told.append, lambda: False)
        self.news.start()

    def is_at_the_end(self, store: Store) -> bool:
        return self.store.waits_at == store.end_offset()

    def misses_it(self, path: Path) -> None:
        """The store is removed, and that was noticed more than once. The first wait of all only begins to watch."""
        await_that(lambda: self.store.waits > 1, "no thread waits")
        while path.exists():
            shutil.rmtree(path, ignore_errors=True)  # a follower that notices too early leaves a lock in it
        before = self.store.looks
        await_that(lambda: self.store.looks > before + 1, "the follower does not look for it")


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    path = tmp_path / "jobs"
    made(path, jobs=3)
    return path


@pytest.fixture
def reader(jobs: Path) -> Iterator[Reader]:
    reader = Reader(jobs)
    yield reader
    reader.news.stop()
    reader.store.close()


def made(path: Path, jobs: int) -> Registry:
    create_files_store(str(path))
    registry = Registry(FilesStore(str(path)))
    for _ in range(jobs):
        register(registry)
    return registry


def register(registry: Registry, **more: Any) -> str:
    return registry.register(prompt="x", agent="shell", **more).job.job_id


def test_a_removed_store_is_not_created_again(jobs: Path, reader: Reader) -> None:
    reader.misses_it(jobs)
    assert not jobs.exists()


@pytest.mark.parametrize("jobs_before", [0, 1, 9], ids=["empty", "shorter", "longer"])
def test_another_store_in_its_place_is_followed_from_its_own_end(jobs: Path, reader: Reader, jobs_before: int) -> None:
    """Else it is never waited for: the end of the journal that is gone is not the end of this one."""
    reader.misses_it(jobs)
    registry = made(jobs, jobs_before)
    await_that(lambda: reader.is_at_the_end(registry.store), "it waits at an end that is none")
    job_id = register(registry)
    await_that(lambda: any(job_id in told for told in reader.told), "it was not told of the job")
    assert registry.store.problems() == []
    registry.store.close()


def test_a_replaced_store_wakes_its_followers(jobs: Path) -> None:
    """No event reports such a move; it shows when the lock is next taken."""
    store = FilesStore(str(jobs))
    offset = store.end_offset()
    while store.wait(offset, 0):
        pass
    jobs.rename(jobs.with_name("away"))
    registry = made(jobs, jobs=0)
    offset = store.end_offset()
    assert store.wait(offset, 0), "its watch is of the directory that was moved"
    while store.wait(offset, 0):
        pass
    register(registry)
    assert store.wait(offset, PATIENCE)
    registry.store.close()
    store.close()
