"""`mam prune` and the journal: what waits for a consumer, and what the others see afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mam.maintenance.retention import Pruned, Retention, prune
from mam.registry import Registry
from mam.stores.consumer import Consumer
from mam.stores.silence import lost_consumers, silent_consumers
from mam.stores.sqlite.store import SqliteStore, create_sqlite_store
from mam.testing.clock import FakeClock
from mam.testing.conformance.base import register_and_claim, register_jobs
from tests.cli.command import Mam

DAY = 86_400
DAYS = 30.0


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def registry(tmp_path: Path, clock: FakeClock) -> Iterator[Registry]:
    create_sqlite_store(str(tmp_path / "jobs.db"))
    store = SqliteStore(str(tmp_path / "jobs.db"), clock)
    yield Registry(store)
    store.close()


def ended(registry: Registry) -> str:
    job = register_and_claim(registry)
    registry.complete(job.job_id, attempt=job.attempt)
    register_jobs(registry, label="newest")
    return job.job_id


def caught_up(registry: Registry, name: str) -> None:
    consumer = Consumer(registry.store, name)
    consumer.load()
    for entry in consumer.entries():
        consumer.done(entry)
    consumer.save()


def pruned(registry: Registry) -> Pruned:
    return prune(registry, Retention(before="9999-01-01T00:00:00Z"), DAYS, lambda _count: None)


def test_entries_wait_for_a_consumer_that_has_not_passed_them(registry: Registry, clock: FakeClock) -> None:
    register_jobs(registry, label="first")
    caught_up(registry, "relay")
    ended(registry)
    clock.advance(DAY)
    done = pruned(registry)
    assert (sum(done.counts.values()), done.entries) == (1, 0), "archived, and not summarised"
    assert (silent_consumers(registry.store, DAYS), lost_consumers(registry.store)) == ([], [])
    caught_up(registry, "relay")
    assert pruned(registry).entries == 2
    assert lost_consumers(registry.store) == []


def test_a_consumer_that_is_silent_for_the_retention_is_lost(registry: Registry, clock: FakeClock) -> None:
    register_jobs(registry, label="first")
    caught_up(registry, "gone")
    ended(registry)
    clock.advance(31 * DAY)
    caught_up(registry, "there")
    assert silent_consumers(registry.store, DAYS) == ["gone"]
    assert pruned(registry).entries == 2
    assert lost_consumers(registry.store) == ["gone"]


def test_a_consumer_that_has_read_everything_is_not_silent(registry: Registry, clock: FakeClock) -> None:
    ended(registry)
    caught_up(registry, "idle")
    clock.advance(400 * DAY)
    assert silent_consumers(registry.store, DAYS) == []


def test_history_and_sums_remain_for_later_readers(mam: Mam) -> None:
    job = mam.register("p", "-s", "run")
    mam("pick", "-s", "run")
    mam("complete", job, "--result", "done")
    mam.register()
    before = mam("logs", job, "--json").out, mam("stats", "--json").json
    assert mam("prune", "--older-than", "0").out == "1 completed moved\n"
    later: dict[str, Any] = {
        "XDG_CACHE_HOME": str(mam.here / "new-cache"),
        "DELEGATE_JOB_LOGS_DIR": str(mam.here / "new-logs"),
    }
    lines = mam("logs", job, "--json", **later).out.splitlines()
    assert lines[:-1] == before[0].splitlines()
    assert '"archived"' in lines[-1]
    assert {**mam("stats", "--json", **later).json, "since": ""} == {**before[1], "since": ""}
    assert mam("logs", job, "--json").out.splitlines() == lines, "the log that was there has no line twice"


def test_sums_of_a_summarised_journal_are_read_in_pages(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that has read only a part of the summaries goes on there."""
    from mam.stats import cache

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "PAGE", 3)
    for _ in range(4):
        ended(registry)
    pruned(registry)
    pages = list[int]()

    def count(read: int) -> None:
        pages.append(read)
        assert len(pages) < 100, "it begins again and again"

    with cache.StatsCache(registry.store, count) as found:
        rows = found.database.execute("SELECT status, count(*) FROM job GROUP BY status ORDER BY status").fetchall()
    assert rows == [("completed", 4), ("pending", 4)]
    assert len(pages) > 1


def test_doctor_names_a_lost_consumer(mam: Mam) -> None:
    mam.register("first")
    store = mam.here / ".mam" / "jobs"
    from mam.stores.files.store import FilesStore

    opened = FilesStore(str(store))
    registry = Registry(opened)
    caught_up(registry, "relay of a broker")
    ended(registry)
    prune(registry, Retention(before="9999-01-01T00:00:00Z"), -1.0, lambda _count: None)
    opened.close()
    found = mam("doctor").out
    assert "the consumer 'relay of a broker' was silent for so long" in found


def test_the_retention_is_a_setting(mam: Mam) -> None:
    job = mam.register("p")
    mam("cancel", job)
    mam.register()
    assert mam("prune").stderr == "mam: no job ended more than 30d ago\n"
    assert mam("prune", MAM_RETENTION_DAYS="0").out == "1 cancelled moved\n"
