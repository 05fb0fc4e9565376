"""A kill before any step of a summary of the journal loses no line of history, and the next prune completes it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mam.maintenance.retention import Retention, prune
from mam.registry import Registry
from mam.testing.conformance.base import history_lines
from tests.faults.killing import at_calls, kill_points
from tests.files.conftest import StoreDir, copied
from tests.files.invariants import check
from tests.files.test_archive_kill import prepared

EVERYTHING = Retention(before="9999-01-01T00:00:00Z")


def histories(registry: Registry, jobs: list[str]) -> dict[str, list[str]]:
    """The kinds of lines, without the one that says that the job was archived."""
    found = {job_id: [line["event"] for line in history_lines(registry.store, job_id)] for job_id in jobs}
    return {job_id: [event for event in events if event != "archived"] for job_id, events in found.items()}


def pruned(registry: Registry) -> None:
    prune(registry, EVERYTHING, 30, lambda _count: None)


def test_killed_before_any_step_of_a_prune(tmp_path: Path) -> None:
    origin = StoreDir(tmp_path / "origin")
    ended = prepared(origin)
    whole = histories(origin.open(), ended)
    wreck = copied(origin, tmp_path / "wreck")

    def work(acknowledge: Callable[[str], None]) -> None:
        pruned(wreck.open())
        acknowledge("done")

    steps = 0
    for _step, acknowledged in kill_points(at_calls, work):
        registry = wreck.open()
        check(wreck, registry)
        assert histories(registry, ended) == whole
        end = int(registry.store.end_offset())
        assert not (acknowledged and registry.store.unsummarised(end))
        pruned(registry)
        assert registry.store.unsummarised(end) == []
        assert histories(registry, ended) == whole
        assert registry.store.summarised_upto() > 0
        copied(origin, wreck.path)
        steps += 1
    assert steps > 15
