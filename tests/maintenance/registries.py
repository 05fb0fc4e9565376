"""Registries to move, and ways to say that two of them are the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mam.config.settings import Config
from mam.jobs.pause import Pause
from mam.location.stores import create_store, open_store, parse_address
from mam.maintenance.batches import batches
from mam.maintenance.destination import begin_import
from mam.maintenance.migration import Moved, copy
from mam.maintenance.source import open_source
from mam.registry import Registry
from mam.stores.port import JobWithEvents, Query

if TYPE_CHECKING:
    from mam.jobs.record import Job
    from mam.location.stores import StoreLocation
    from mam.stores.port import Store

CONFIG = Config()


def made(address: str) -> Store:
    located = parse_address(address, "test")
    create_store(located, CONFIG)
    return open_store(located, CONFIG)


def opened(address: str) -> Store:
    return open_store(parse_address(address, "test"), CONFIG)


def furnish(store: Store, count: int) -> None:
    """Something of everything: all statuses, keys, chains of retries, dependencies, events, secrets, archived jobs."""
    registry = Registry(store)
    ended = []
    for number in range(count):
        job_id = registry.register(
            prompt=f"job {number}: 한 일을 해라", agent="shell", label=f"label-{number % 3}", priority=number % 4,
            key=f"key {number}" if number % 5 == 0 else None,
            exclusive="one at a time" if number % 7 == 0 else None,
        ).job.job_id  # fmt: skip
        if number % 2:
            registry.publish(job_id, event="progress", data={"percent": number})
        if number % 4 == 1:
            ended.append(registry.complete(job_id, result=f"result {number}").job_id)
        elif number % 4 == 3:
            ended.append(registry.fail(job_id, reason="it broke").job_id)
        if number % 12 == 3:
            registry.retry(job_id)
        if number % 10 == 2:
            registry.register(prompt="later", agent="shell", after=[job_id])
        if number % 9 == 0:
            store.keep_secrets(job_id, {"auth_token": f"token {number}"})
    registry.pick("label-1", owner="worker", lease_seconds=3600)
    for generation in ("first", "second", "third"):
        store.announce("gpu", generation)
    registry.pause(Pause(agent="codex", label=None, reason="because"))
    registry.archive(ended[::3])


def multiply(store: Store, count: int) -> None:
    """As many jobs more, each a copy of one that is there; to register so many would take an hour."""
    originals = [
        JobWithEvents(job=job, events=store.events(job.job_id)) for job in store.select(Query()) if _stands_alone(job)
    ]
    number = max(job.number for job in store.select(Query()))
    for batch in batches(range(count)):
        copies = []
        for each in batch:
            kept = originals[each % len(originals)]
            number += 1
            job = kept.job.replace(job_id=f"{number:032x}", number=number)
            copies.append(JobWithEvents(job=job, events=[{**event, "job_id": job.job_id} for event in kept.events]))
            if each % 9 == 0:
                store.keep_secrets(job.job_id, {"auth_token": f"token {number}"})
        store.import_jobs(copies)


def _stands_alone(job: Job) -> bool:
    return not (job.key or job.retry_of or job.after or job.exclusive)


def contents(store: Store) -> dict[str, Any]:
    jobs = list(store.select(Query()))
    return {
        "jobs": [job.to_json() for job in jobs],
        "events": {job.job_id: store.events(job.job_id) for job in jobs},
        "secrets": {job.job_id: store.secrets(job.job_id) for job in jobs},
        "archive": [(kept.job.to_json(), kept.events) for kept in store.archive_contents()],
        "generations": store.generations(),
        "pauses": [pause.as_dict() for pause in store.pauses()],
    }


def migrate(origin: str, target: str, advance: Callable[[int], None] = lambda _count: None) -> Moved:
    source = open_source(parse_address(origin, "test"), lambda located: open_store(located, CONFIG))
    destination = begin_import(parse_address(target, "test"))
    moved = copy(source, destination.store, advance)
    destination.finish()
    return moved


def located(address: str) -> StoreLocation:
    return parse_address(address, "test")
