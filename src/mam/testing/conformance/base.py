"""What every part of the suite uses: a store, a clock that the test moves, and ways to read what happened."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from mam.registry import Registry
from mam.stores.port import ClaimRequest, Query
from mam.testing.clock import FakeClock
from mam.testing.races import RacePool
from mam.testing.tasks import LABEL, event_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import Any, ClassVar

    from mam.jobs.record import Job
    from mam.stores.port import Entry, Store
    from mam.util.clock import Clock


class StoreCase:
    """One test of one store. `registry` and `store` live by a clock that obeys; `live` by the real one, for races."""

    shared_by_processes: ClassVar[bool]
    """Whether a second process can open the same store; threads race instead where it cannot."""
    has_boot_clock: ClassVar[bool] = True
    """Whether leases go by the clock that counts from boot; a server of many hosts has only its wall clock."""

    @staticmethod
    def open_store(location: str, clock: Clock | None = None) -> Store:
        """The store at `location`, made if it is not there; without a clock it takes the system's.

        Static, since other processes call it by its name.
        """
        raise NotImplementedError

    @pytest.fixture
    def location(self, tmp_path: Path) -> str:
        """A path for each test; override it where a store is not a path."""
        return str(tmp_path / "store")

    @pytest.fixture
    def clock(self) -> FakeClock:
        return FakeClock()

    @pytest.fixture
    def store(self, location: str, clock: FakeClock) -> Iterator[Store]:
        store = self.open_store(location, clock)
        yield store
        store.close()

    @pytest.fixture
    def registry(self, store: Store) -> Registry:
        return Registry(store)

    @pytest.fixture
    def live(self, location: str) -> Iterator[Store]:
        store = self.open_store(location)
        yield store
        store.close()

    @pytest.fixture
    def pool(self, location: str, live: Store) -> Iterator[RacePool]:
        processes = self.shared_by_processes
        with RacePool(partial(self.open_store, location) if processes else lambda: live, processes=processes) as pool:
            yield pool


def register_jobs(registry: Registry, count: int = 1, **choices: Any) -> list[str]:
    """Ids of new jobs, oldest first."""
    choices = {"prompt": "sort ten numbers", "agent": "claude-code", "label": LABEL, **choices}
    return [registry.register(**choices).job.job_id for _ in range(count)]


def register_and_claim(registry: Registry, lease_seconds: float | None = None, **choices: Any) -> Job:
    """A new job, running."""
    (job_id,) = register_jobs(registry, **choices)
    return claim_again(registry, job_id, lease_seconds)


def claim_again(registry: Registry, job_id: str, lease_seconds: float | None = None) -> Job:
    label = registry.get(job_id).agent_session
    job = registry.store.claim(ClaimRequest(label=label, owner="worker", lease_seconds=lease_seconds))
    assert job is not None, f"nothing to claim for {label}"
    assert job.job_id == job_id
    return job


def pick_id(registry: Registry, label: str = LABEL) -> str | None:
    job = registry.pick(label, owner="worker")
    return None if job is None else job.job_id


def job_in_status(registry: Registry, status: str) -> Job:
    """A new job in one of the six statuses, reached as a user would."""
    if status == "pending":
        return registry.get(register_jobs(registry)[0])
    if status == "waiting":
        due = registry.store.clock.now().wall_ms + 3_600_000
        return registry.get(register_jobs(registry, due_ms=due)[0])
    job = register_and_claim(registry)
    enders: dict[str, Callable[[], Job]] = {
        "running": lambda: job,
        "completed": lambda: registry.complete(job.job_id, attempt=job.attempt),
        "error": lambda: registry.fail(job.job_id, attempt=job.attempt, reason="broken"),
        "cancelled": lambda: registry.cancel(job.job_id),
    }
    return enders[status]()


def cancel_unless_ended(registry: Registry, job_id: str) -> None:
    """So that the job is not the next one to be claimed."""
    if not registry.get(job_id).status.ended:
        registry.cancel(job_id)


def snapshot(store: Store) -> tuple[dict[str, Any], list[Entry]]:
    """All records and the whole journal: if this is the same before and after, nothing was changed."""
    return {job.job_id: job.to_json() for job in store.select(Query())}, list(store.entries(None))


def history_lines(store: Store, job_id: str) -> list[dict[str, Any]]:
    return [line for entry in store.entries(None) if entry.job_id == job_id for line in entry.lines]


def transitions_of(store: Store, job_id: str) -> list[tuple[str, str]]:
    return [(line["from"], line["to"]) for line in history_lines(store, job_id) if line["event"] == "status_changed"]


def terminal_events(store: Store, job_id: str) -> list[tuple[str, str]]:
    """Event and status of every terminal event that the job has."""
    return [
        (event["event"], event["data"].get("status"))
        for event in store.events(job_id)
        if event.get("event") in ("completed", "error")
    ]


def check_journal(store: Store) -> None:
    """The journal, replayed, is the registry; and every number up to last_seq is accounted for."""
    records: dict[str, dict[str, Any]] = {}
    for entry in store.entries(None):
        assert entry.fields is not None
        records.setdefault(entry.job_id, {}).update(entry.fields)
    jobs = {job.job_id: job for job in store.select(Query())}
    assert records == {job_id: job.to_json() for job_id, job in jobs.items()}
    for job_id, job in jobs.items():
        assert store.get(job_id) == job
        assert event_numbers(store.events(job_id)) == list(range(1, job.last_seq + 1))
        assert len(terminal_events(store, job_id)) == int(job.status.ended)
