"""`mam stats`: the figures are those of a history that the tests know, and the cache is never in the way."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from mam.jobs.record import Job
from mam.registry import Registry
from mam.stats import cache as cache_module
from mam.stats import figures
from mam.stats.cache import StatsCache
from mam.stats.fold import transitions_in
from mam.stats.tally import Tally
from mam.stores.files.adopt import adopt
from mam.stores.files.store import FilesStore, create_files_store
from mam.stores.port import Entry, JobWithEvents, Query
from mam.stores.sqlite.store import SqliteStore, create_sqlite_store
from mam.testing.clock import FakeClock
from tests.cli.command import Mam

DAY = 86_400


def _files(path: Path, clock: FakeClock) -> FilesStore:
    create_files_store(str(path))
    return FilesStore(str(path), clock=clock)


def _sqlite(path: Path, clock: FakeClock) -> SqliteStore:
    create_sqlite_store(f"{path}.db")
    return SqliteStore(f"{path}.db", clock=clock)


@pytest.fixture(params=[_files, _sqlite])
def registry(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    make: Callable[[Path, FakeClock], FilesStore | SqliteStore] = request.param
    return Registry(make(tmp_path / "jobs", FakeClock()))


def clock_of(registry: Registry) -> FakeClock:
    assert isinstance(registry.store.clock, FakeClock)
    return registry.store.clock


def begun(registry: Registry, label: str, waits: float, agent: str = "shell") -> Job:
    registry.register(prompt="x", agent=agent, label=label)
    clock_of(registry).advance(waits)
    job = registry.pick(label, owner="me")
    assert job is not None
    return job


def completed(registry: Registry, label: str, waits: float, runs: float) -> None:
    job = begun(registry, label, waits)
    clock_of(registry).advance(runs)
    registry.complete(job.job_id, attempt=job.attempt)


def test_jobs_are_counted_and_times_are_summed(registry: Registry) -> None:
    for number in range(1, 21):
        completed(registry, "a", waits=number, runs=number * 10)
    failed = begun(registry, "b", 3)
    registry.fail(failed.job_id, attempt=1, reason="no")
    registry.cancel(registry.register(prompt="x", agent="shell", label="b").job.job_id)
    begun(registry, "c", 1)

    with StatsCache(registry.store) as cache:
        total = figures.EndedJobs(cache.database, 0).total()
        by_label = {one.name: one for one in figures.EndedJobs(cache.database, 0).grouped("label")}
        open_now = figures.open_jobs(cache.database)

    assert (total.ended, total.completed, total.error, total.cancelled) == (22, 20, 1, 1)
    assert total.success == 20 / 21
    assert open_now == {"running": 1}
    assert (by_label["a"].wait_median, by_label["a"].wait_p95) == (10, 19)
    assert (by_label["a"].run_median, by_label["a"].run_p95) == (100, 190)
    assert by_label["b"].success == 0
    assert by_label["b"].wait_median == 3, "who was never claimed did not wait to be"


def test_losses_retries_and_time_over_several_tries(registry: Registry) -> None:
    job = begun(registry, "a", 5)
    clock_of(registry).advance(4000)  # its lease is over
    assert registry.pick("a", owner="other") is not None
    clock_of(registry).advance(7)
    registry.fail(job.job_id, attempt=2, reason="later", retryable=True)
    clock_of(registry).advance(3600)
    third = registry.pick("a", owner="other")
    assert third is not None
    clock_of(registry).advance(11)
    registry.complete(third.job_id, attempt=3)
    with StatsCache(registry.store) as cache:
        (one,) = figures.EndedJobs(cache.database, 0).grouped("agent")
    assert (one.losses, one.retries, one.completed) == (1, 1, 1)
    assert one.run_median == pytest.approx(4000 + 7 + 11, rel=0.01)


def test_the_sums_of_each_day_are_those_of_its_jobs(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    """In whatever pages the journal is read, and when an ended job comes once more from another store."""
    monkeypatch.setattr(cache_module, "PAGE", 7)
    for number in range(30):
        completed(registry, f"label {number % 3}", waits=number, runs=number * 1000)
        clock_of(registry).advance(DAY // 4)
        with StatsCache(registry.store):
            pass
    registry.store.import_jobs([JobWithEvents(job=job, events=[]) for job in registry.select(Query())])
    with StatsCache(registry.store) as cache:
        by_day = figures.EndedJobs(cache.database, 0).grouped("day")
        for kind in ("all", "label", "agent"):
            kept = figures.EndedJobs(cache.database, 0)._tallies(kind)
            again: dict[str, Tally] = {}
            for job in figures.jobs(cache.database, "ended IS NOT NULL"):
                name = figures._day(job["ended"]) if kind == "all" else job[kind]
                again.setdefault(name, Tally()).add(job)
            assert {name: tally.figures() for name, tally in kept.items()} == {
                name: tally.figures() for name, tally in again.items()
            }
        (last,) = [one for one in figures.EndedJobs(cache.database, 0).grouped("day") if one.name == by_day[-1].name]
        since = next(iter(figures.jobs(cache.database, "ended = (SELECT max(ended) FROM job)")))["ended"]
        recent = figures.EndedJobs(cache.database, since).total()
    assert sum(one.ended for one in by_day) == 30
    assert 1 <= recent.ended <= last.ended


def test_figures_are_grouped_by_day_within_a_span(registry: Registry) -> None:
    completed(registry, "a", 1, 1)
    clock_of(registry).advance(3 * DAY)
    completed(registry, "a", 1, 1)
    completed(registry, "a", 1, 1)
    with StatsCache(registry.store) as cache:
        days = figures.EndedJobs(cache.database, 0).grouped("day")
        recent = figures.EndedJobs(cache.database, clock_of(registry).now().wall_ms // 1000 - DAY).total()
    assert [one.ended for one in days] == [1, 2]
    assert len(figures.days_between(days[0].name, days[1].name)) == 4
    assert recent.ended == 2


def test_only_what_is_new_is_read(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    completed(registry, "a", 1, 1)
    with StatsCache(registry.store):
        pass
    read = []
    entries = registry.store.entries

    def counted(offset: str | None):  # type: ignore[no-untyped-def]
        for entry in entries(offset):
            read.append(entry.number)
            yield entry

    monkeypatch.setattr(registry.store, "entries", counted)
    completed(registry, "a", 1, 1)
    with StatsCache(registry.store) as cache:
        assert figures.EndedJobs(cache.database, 0).total().ended == 2
    assert len(read) == 4, "the last one that was known, and the three that are new"


def test_a_damaged_cache_is_rebuilt(registry: Registry, tmp_path: Path) -> None:
    completed(registry, "a", 1, 1)
    with StatsCache(registry.store):
        pass
    (file,) = (tmp_path / "cache/mam").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_bytes(b"garbage" * 1000)
    with StatsCache(registry.store) as cache:
        assert figures.EndedJobs(cache.database, 0).total().ended == 1
    database = apsw.Connection(str(file))
    database.execute("DROP TABLE consumer")
    database.close()
    with StatsCache(registry.store) as cache:
        assert figures.EndedJobs(cache.database, 0).total().ended == 1
    shutil.rmtree(tmp_path / "cache")
    (tmp_path / "cache").write_text("in the way")
    with StatsCache(registry.store) as cache:
        assert figures.EndedJobs(cache.database, 0).total().ended == 1


def test_a_restored_store_is_counted_from_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    registry = Registry(_files(tmp_path / "jobs", FakeClock()))
    completed(registry, "a", 1, 1)
    registry.store.close()
    shutil.copytree(tmp_path / "jobs", tmp_path / "backup")
    clock = clock_of(registry)
    registry = Registry(FilesStore(str(tmp_path / "jobs"), clock=clock))
    completed(registry, "lost", 1, 1)
    completed(registry, "lost", 1, 1)
    with StatsCache(registry.store):
        pass
    registry.store.close()
    shutil.rmtree(tmp_path / "jobs")
    shutil.copytree(tmp_path / "backup", tmp_path / "jobs")
    restored = Registry(FilesStore(str(tmp_path / "jobs"), clock=clock))
    completed(restored, "b", 1, 1)
    completed(restored, "c", 1, 1)
    with StatsCache(restored.store) as cache:
        assert sorted(one.name for one in figures.EndedJobs(cache.database, 0).grouped("label")) == ["a", "b", "c"]


def test_records_that_came_as_files_have_their_label(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    store = _files(tmp_path / "jobs", FakeClock())
    fields = {"job_id": "aaaaaaaa", "status": "completed", "created_at": "2026-01-01T00:00:00Z", "prompt": "x"}
    (tmp_path / "jobs/aaaaaaaa.json").write_text(json.dumps({**fields, "agent": "codex", "agent_session": "old"}))
    list(adopt(store, ["aaaaaaaa"]))
    with StatsCache(store) as cache:
        assert [one.name for one in figures.EndedJobs(cache.database, 0).grouped("label")] == ["old"]


def test_jobs_of_another_store_bring_their_times_along(registry: Registry, tmp_path: Path) -> None:
    completed(registry, "a", waits=5, runs=50)
    begun(registry, "b", 7)
    other = FilesStore(_made(tmp_path / "other"), clock=clock_of(registry))
    other.import_jobs([JobWithEvents(job=job, events=[]) for job in registry.select(Query())])
    with StatsCache(other) as cache:
        total = figures.EndedJobs(cache.database, 0).total()
        assert (total.completed, total.wait_median, total.run_median) == (1, 5, 50)
        assert figures.open_jobs(cache.database) == {"running": 1}


def _made(path: Path) -> str:
    create_files_store(str(path))
    return str(path)


def test_the_cost_of_each_attempt_is_added_once(registry: Registry) -> None:
    def entry(number: int, before: str, after: str, agent: dict[str, object]) -> Entry:
        moved = {"timestamp": "2026-06-19T09:00:00Z", "event": "status_changed", "from": before, "to": after}
        return Entry(offset="", number=number, job_id="a" * 32, fields={"run": {"agent": agent}}, lines=(moved,))

    half = {"tokens": {"input": 200, "cached": 22, "output": 44}, "cost_usd": 0.25}
    told = [
        *transitions_in(entry(1, "pending", "running", {"tokens": {"input": 1}})),
        *transitions_in(entry(2, "running", "waiting", half)),
        *transitions_in(entry(3, "running", "completed", {**half, "cost_usd": None})),
        *transitions_in(entry(4, "running", "completed", {"tokens": "many", "cost_usd": "dear"})),
    ]
    assert sum(one.tokens for one in told) == 2 * 266
    assert sum(one.cost for one in told) == 0.25


# -- the verb --------------------------------------------------------------------------------------------------------


def test_json_pipe_and_terminal_show_the_same_figures(mam: Mam) -> None:
    for label in ("a", "b", "a rather long label, far longer than a column"):
        job = mam.register("x", "-s", label)
        mam("pick", "-s", label)
        mam("complete", job)
    answer = mam("stats", "--json").json
    assert answer["total"]["completed"] == 3
    assert [len(answer["by"][kind]) for kind in ("label", "agent", "day")] == [3, 1, 1]
    rows = [line.split("\t") for line in mam("stats", "--by", "label").out.splitlines()]
    assert [row[0] for row in rows] == ["all", "label", "label", "label"]
    assert {len(row) for row in rows} == {14}
    shown = mam.on_terminal("stats", columns=80).out
    assert "█" in shown
    lines = re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines()
    assert max(map(len, lines)) <= 80


def test_an_empty_store_has_figures_and_bad_input_is_rejected(mam: Mam) -> None:
    mam("stats").failed(9, "No store")
    mam("init")
    assert mam("stats", "--json").json["total"]["ended"] == 0
    assert "no job has ended" in mam.on_terminal("stats").out
    mam("stats", "--by", "colour").failed(2, "label, agent or day")
    mam("stats", "--since", "yesterday").failed(2, "--since")
