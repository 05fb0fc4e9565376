"""A kill before any step of a move into the archive: each job is whole, in the registry or in the archive."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mam.stores.port import Query
from tests.faults.killing import at_calls, kill_points
from tests.files.conftest import StoreDir, copied
from tests.files.invariants import check


def prepared(store_dir: StoreDir) -> list[str]:
    registry = store_dir.open()
    ended = [registry.register(prompt=f"job {number}", agent="codex", key=f"k{number}").job.job_id for number in (1, 2)]
    for job_id in ended:
        registry.publish(job_id, event="progress")
        registry.complete(job_id, result="r")
    registry.register(prompt="the newest", agent="codex")
    registry.store.close()
    return ended


def test_killed_before_any_step_of_a_move(tmp_path: Path) -> None:
    origin = StoreDir(tmp_path / "origin")
    ended = prepared(origin)
    before = {job_id: (origin.open().get(job_id), origin.open().events(job_id)) for job_id in ended}
    wreck = copied(origin, tmp_path / "wreck")

    def work(acknowledge: Callable[[str], None]) -> None:
        assert wreck.open().archive(ended) == ended
        acknowledge("done")

    steps = 0
    for _step, acknowledged in kill_points(at_calls, work):
        registry = wreck.open()
        check(wreck, registry)
        live = {job.job_id for job in registry.select(Query())} & {*ended}
        assert not (acknowledged and live)
        assert {job_id: (registry.get(job_id), registry.events(job_id)) for job_id in ended} == before
        assert len(live) in (0, 2), "they go together"
        assert not registry.register(prompt="again", agent="codex", key="k1").created
        registry.archive(ended)
        assert {job.job_id for job in registry.select(Query())} & {*ended} == set()
        assert {job_id: (registry.get(job_id), registry.events(job_id)) for job_id in ended} == before
        assert not list(wreck.path.glob(f"{ended[0]}*")), "its files are gone"
        copied(origin, wreck.path)
        steps += 1
    assert steps > 15
