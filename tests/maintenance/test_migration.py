"""A registry that has been moved is the same registry; one that could not be is none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mam.errors import MamError, Refused, StoreMissing, StoreUnavailable
from mam.jobs.status import Status
from mam.maintenance.destination import begin_import
from mam.maintenance.migration import copy
from mam.maintenance.source import StoreSource
from mam.registry import Registry
from mam.stores.port import Query
from tests.disks import fill
from tests.maintenance.registries import contents, furnish, located, made, migrate, multiply, opened

JOBS = int(os.environ.get("MAM_MIGRATE_JOBS", "150"))


def test_from_files_to_sqlite_to_postgresql_and_back(tmp_path: Path, database: str) -> None:
    first, second, last = str(tmp_path / "first"), f"sqlite://{tmp_path}/second.db", str(tmp_path / "last")
    origin = made(first)
    furnish(origin, min(JOBS, 150))
    multiply(origin, JOBS - min(JOBS, 150))
    before = contents(origin)
    for source, target in ((first, second), (second, database), (database, last)):
        moved = migrate(source, target)
        assert moved.jobs + moved.archived == len(before["jobs"]) + len(before["archive"])
        assert not moved.left_behind
        assert contents(opened(target)) == before
    assert contents(origin) == before, "the source is untouched"


@pytest.mark.parametrize("kind", ["files", "sqlite"])
def test_work_continues_in_the_new_store(tmp_path: Path, kind: str) -> None:
    furnish(made(str(tmp_path / "from")), 40)
    target = str(tmp_path / "to") if kind == "files" else f"sqlite://{tmp_path}/to.db"
    migrate(str(tmp_path / "from"), target)
    registry = Registry(opened(target))
    numbers = {job.number for job in registry.select(Query())}
    new = registry.register(prompt="new", agent="shell", label="label-0").job
    assert new.number == max(numbers) + 1
    assert not registry.register(prompt="again", agent="shell", key="key 0").created
    running = next(job for job in registry.select(Query()) if job.status is Status.RUNNING)
    registry.complete(running.job_id, attempt=running.attempt)
    taken = []
    for label in ("label-0", "label-1", "label-2", "shell"):
        while (job := registry.pick(label, owner="worker")) is not None:
            taken.append(job.job_id)
            registry.complete(job.job_id, attempt=job.attempt)
    assert len({*taken}) == len(taken) > 10
    left = [job for job in registry.select(Query()) if job.status in (Status.PENDING, Status.RUNNING)]
    assert not left


@pytest.mark.parametrize("kind", ["files", "sqlite", "postgresql"])
def test_a_registry_with_jobs_is_never_written_into(tmp_path: Path, kind: str, request: pytest.FixtureRequest) -> None:
    furnish(made(str(tmp_path / "from")), 3)
    target = {
        "files": lambda: str(tmp_path / "to"),
        "sqlite": lambda: f"sqlite://{tmp_path}/to.db",
        "postgresql": lambda: str(request.getfixturevalue("database")),
    }[kind]()
    there = made(target)
    Registry(there).register(prompt="mine", agent="shell")
    before = contents(there)
    with pytest.raises(StoreUnavailable, match="not empty"):
        migrate(str(tmp_path / "from"), target)
    assert contents(there) == before


def test_one_damaged_record_among_many_stays_behind_and_is_named(tmp_path: Path) -> None:
    origin = made(str(tmp_path / "from"))
    furnish(origin, 30)
    opened(str(tmp_path / "from")).sweep()  # by which the record files are known to be whole
    broken = next(origin.select(Query(statuses=frozenset({Status.COMPLETED})))).job_id
    (tmp_path / "from" / f"{broken}.json").write_text('{"job_id": ')
    count = len(list(origin.select(Query())))
    moved = migrate(str(tmp_path / "from"), str(tmp_path / "to"))
    assert [found.file for found in moved.left_behind] == [f"{broken}.json"]
    assert moved.jobs == count == len(list(opened(str(tmp_path / "to")).select(Query())))


def test_changes_at_the_source_during_a_migration_are_copied(tmp_path: Path) -> None:
    origin = made(str(tmp_path / "from"))
    registry = Registry(origin)
    for number in range(250):
        registry.register(prompt=f"job {number}", agent="shell")
    batches: list[int] = []

    def disturb(count: int) -> None:
        batches.append(count)
        if len(batches) == 2:
            first = registry.pick("shell", owner="worker")
            assert first is not None
            registry.complete(first.job_id, attempt=first.attempt)
            registry.register(prompt="late", agent="shell")

    migrate(str(tmp_path / "from"), f"sqlite://{tmp_path}/to.db", disturb)
    assert contents(opened(f"sqlite://{tmp_path}/to.db")) == contents(origin)


class Restless(StoreSource):
    """Registers a job each time that the migration looks for changes."""

    def state(self) -> str:
        Registry(self._store).register(prompt="more", agent="shell")
        return super().state()


def test_a_source_that_changes_all_the_time_is_rejected(tmp_path: Path) -> None:
    origin = made(str(tmp_path / "from"))
    furnish(origin, 20)
    target = str(tmp_path / "to")
    destination = begin_import(located(target))
    with pytest.raises(Refused, match="the same command"):
        copy(Restless(origin), destination.store, lambda _count: None)
    with pytest.raises(StoreMissing):
        opened(target)
    migrate(str(tmp_path / "from"), target)
    assert contents(opened(target)) == contents(origin)


@pytest.mark.parametrize("kind", ["files", "sqlite"])
def test_a_full_disk_in_the_middle_leaves_no_registry(
    small_disk: Path, tmp_path_factory: pytest.TempPathFactory, kind: str
) -> None:
    origin = str(tmp_path_factory.mktemp("origin") / "from")
    furnish(made(origin), 120)
    target = str(small_disk / "to") if kind == "files" else f"sqlite://{small_disk}/to.db"
    ballast = fill(small_disk)
    ballast.write_bytes(b"x" * (ballast.stat().st_size - 300_000))
    with pytest.raises(MamError, match=r"(?i)no space|full"):
        migrate(origin, target)
    with pytest.raises(StoreMissing):
        opened(target)
    ballast.unlink()
