"""The source of a migration: a registry of mam, or a tree of the old programs. It is only read."""

from __future__ import annotations

import os

from mam.errors import BadInput, StoreMissing
from mam.stores.port import JobWithEvents, Problem, Query

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Protocol

    from mam.jobs.generation import Generations
    from mam.jobs.pause import Pause
    from mam.location.stores import StoreLocation
    from mam.stores.port import Store

    class Source(Protocol):
        address: str

        def ids(self) -> Sequence[str]:
            """Of all jobs that are not archived, in the order in which they were registered."""

        def read(self, job_id: str) -> JobWithEvents | None:
            """The job as it is now; None when it is gone, archived, or cannot be read."""

        def archive(self) -> Iterator[JobWithEvents]: ...

        def secrets(self, job_id: str) -> dict[str, str]: ...

        def pauses(self) -> list[Pause]: ...

        def generations(self) -> dict[str, Generations]: ...

        def state(self) -> str:
            """Another text whenever something has changed since."""

        def changed_since(self, state: str) -> list[str]:
            """The jobs that may have changed since."""

        def problems(self) -> list[Problem]:
            """What cannot be read, and stays behind."""


class StoreSource:
    """A registry that mam knows."""

    def __init__(self, store: Store) -> None:
        self.address = store.address
        self._store = store

    def ids(self) -> Sequence[str]:
        return [job.job_id for job in self._store.select(Query())][::-1]

    def read(self, job_id: str) -> JobWithEvents | None:
        from mam.errors import BadRecord, UnknownJob

        try:
            return JobWithEvents(job=self._store.get(job_id), events=self._store.events(job_id))
        except (BadRecord, UnknownJob):
            return None

    def archive(self) -> Iterator[JobWithEvents]:
        return self._store.archive_contents()

    def secrets(self, job_id: str) -> dict[str, str]:
        return self._store.secrets(job_id)

    def pauses(self) -> list[Pause]:
        return self._store.pauses()

    def generations(self) -> dict[str, Generations]:
        return self._store.generations()

    def state(self) -> str:
        return self._store.end_offset()

    def changed_since(self, state: str) -> list[str]:
        return list({entry.job_id: None for entry in self._store.entries(state)})

    def problems(self) -> list[Problem]:
        return self._store.problems()


def open_source(located: StoreLocation, open_store: Callable[[StoreLocation], Store]) -> Source:
    from mam.location.stores import FILES, check_ownership

    check_ownership(located)
    if located.kind != FILES:
        return StoreSource(open_store(located))
    path = located.path
    if not os.path.isdir(path):
        raise StoreMissing(store=path)
    if os.path.isdir(os.path.join(path, ".store")):
        return StoreSource(open_store(located))
    from mam.maintenance.old_jobs import OldJobs
    from mam.maintenance.old_queue import OldQueue, is_queue

    if is_queue(path):
        return OldQueue(path)
    if any(name.endswith(".json") for name in os.listdir(path)):
        return OldJobs(path)
    raise BadInput(why=f"{path} holds no jobs: no registry, no old records, no queue of `job.json` files")
