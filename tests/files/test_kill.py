"""Killed before any storage step of any verb: what was acknowledged is there, what was not is whole or absent."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mam.errors import GenerationLost
from mam.registry import Registry
from mam.stores.port import Query
from tests.files.conftest import Place
from tests.files.invariants import check
from tests.files.killing import kill_points

Verb = Callable[[Registry], object]


def prepared(place: Place) -> tuple[str, str]:
    """One job that runs as attempt 1 and has spoken, one that is pending, one whose wait is over."""
    registry = place.open()
    running = registry.register(prompt="runs", agent="codex").job.job_id
    registry.pick("codex", owner="me", session=("gpu", "first"))
    registry.publish(running, event="started", attempt=1)
    pending = registry.register(prompt="waits", agent="codex").job.job_id
    registry.register(prompt="later", agent="codex", due_ms=place.clock.now().wall_ms + 1000)
    registry.register(prompt="then", agent="codex", after=[pending], exclusive="e")
    registry.store.close()
    place.clock.advance(2)
    return running, pending


VERBS: dict[str, Callable[[str, str], Verb]] = {
    "register": lambda running, pending: lambda registry: registry.register(prompt="new", agent="codex", key="k"),
    "pick": lambda running, pending: lambda registry: registry.pick("codex", owner="me"),
    "pick in a new session": lambda running, pending: (
        lambda registry: registry.pick("codex", owner="me", session=("gpu", "second"))
    ),
    "announce": lambda running, pending: lambda registry: registry.announce("gpu", "second"),
    "heartbeat": lambda running, pending: lambda registry: registry.heartbeat(running, attempt=1),
    "publish": lambda running, pending: lambda registry: registry.publish(running, event="progress", attempt=1),
    "next_seq": lambda running, pending: lambda registry: registry.next_seq(running),
    "complete": lambda running, pending: lambda registry: registry.complete(running, attempt=1, result="r"),
    "complete a pending job": lambda running, pending: lambda registry: registry.complete(pending),
    "fail": lambda running, pending: lambda registry: registry.fail(running, reason="r", attempt=1),
    "fail retryably": lambda running, pending: (
        lambda registry: registry.fail(running, reason="r", attempt=1, retryable=True)
    ),
    "release": lambda running, pending: lambda registry: registry.release(running, attempt=1),
    "register after another": lambda running, pending: (
        lambda registry: registry.register(prompt="new", agent="codex", after=[running], exclusive="e")
    ),
    "sweep": lambda running, pending: lambda registry: registry.sweep(),
    "cancel": lambda running, pending: lambda registry: registry.cancel(pending),
}


@pytest.mark.parametrize("verb", VERBS)
def test_killed_before_any_step(tmp_path: Path, verb: str) -> None:
    origin = Place(tmp_path / "origin")
    act = VERBS[verb](*prepared(origin))
    wreck = copied(origin, tmp_path / "wreck")
    before = outcome(wreck)

    def work(acknowledge: Callable[[str], None]) -> None:
        act(wreck.open())
        acknowledge("done")

    steps = 0
    for _step, acknowledged, _killed in kill_points(work):
        check(wreck, wreck.open())
        after = outcome(wreck)
        assert acknowledged == ["done"] or after == before or _differs_by_one_act(before, after)
        assert not acknowledged or after != before
        copied(origin, wreck.path)
        steps += 1
    assert steps > 15, "the seam no longer reaches the storage steps"


def test_killed_while_a_generation_takes_over_it_is_done_by_its_next_word(tmp_path: Path) -> None:
    origin = Place(tmp_path / "origin")
    running, _pending = prepared(origin)
    wreck = copied(origin, tmp_path / "wreck")

    def work(acknowledge: Callable[[str], None]) -> None:
        wreck.open().announce("gpu", "second")
        acknowledge("done")

    between = 0
    for _step, acknowledged, _killed in kill_points(work):
        known = (wreck.path / ".store" / "generations").read_text(encoding="utf-8")
        holder = wreck.open().get(running).claimant
        assert not acknowledged or holder is None
        assert holder is not None or '"second"' in known, "nothing is taken from one that still counts"
        between += holder is not None and '"second"' in known
        registry = wreck.open()
        registry.announce("gpu", "second")
        assert registry.get(running).status == "pending"
        with pytest.raises(GenerationLost):
            registry.announce("gpu", "first")
        check(wreck, registry)
        copied(origin, wreck.path)
    assert between > 0, "no kill fell between the two steps"


def test_killed_while_the_first_store_is_made(tmp_path: Path) -> None:
    place = Place(tmp_path / "jobs")

    def work(acknowledge: Callable[[str], None]) -> None:
        acknowledge(place.open().register(prompt="first", agent="codex").job.job_id)

    for _step, acknowledged, _killed in kill_points(work):
        registry = place.open()
        check(place, registry)
        assert {*acknowledged} <= {job.job_id for job in registry.select(Query())}
        shutil.rmtree(place.path)
        place = Place(place.path)


def test_killed_while_an_index_is_made_anew(tmp_path: Path) -> None:
    origin = Place(tmp_path / "origin")
    prepared(origin)
    before = outcome(origin)
    for path in (origin.path / ".store").glob("index.sqlite*"):
        path.unlink()
    wreck = copied(origin, tmp_path / "wreck")

    def work(acknowledge: Callable[[str], None]) -> None:
        wreck.open().store.end()
        acknowledge("done")

    for _step, _acknowledged, _killed in kill_points(work):
        check(wreck, wreck.open())
        assert outcome(wreck) == before
        copied(origin, wreck.path)


def copied(origin: Place, path: Path) -> Place:
    """The same registry in another directory, whatever was there before."""
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(origin.path, path)
    place = Place(path)
    place.clock = origin.clock
    return place


def outcome(place: Place) -> dict[str, tuple[object, ...]]:
    jobs = place.open().select(Query())
    return {job.job_id: (job.status, job.attempt, job.last_seq, job.lease, job.heard_at) for job in jobs}


def _differs_by_one_act(before: dict[str, tuple[object, ...]], after: dict[str, tuple[object, ...]]) -> bool:
    """The act that was killed may have happened; a pick also settles what was due."""
    changed = [job_id for job_id in after if after[job_id] != before.get(job_id)]
    return before.keys() <= after.keys() and 1 <= len(changed) <= 2
