"""A kill before any step of any verb: acknowledged acts are there, and others are there as a whole or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mam.errors import GenerationLost
from mam.jobs.pause import Pause
from mam.registry import Registry
from mam.stores.files.rebuild import rebuild
from mam.stores.port import Query
from mam.util.clock import SystemClock
from tests.faults.invariants import check_files, check_history, check_store, looked_at
from tests.faults.killing import kill_points
from tests.faults.store_kinds import STORE_KINDS, StoreKind, copied
from tests.sample_jobs import WRITERS, SampleJobs

if TYPE_CHECKING:
    from mam.stores.port import Store

pytestmark = pytest.mark.timeout(1200)  # guards against hanging only, also on a loaded machine

SEAMS = [(store_kind, seam) for store_kind in STORE_KINDS.values() for seam in store_kind.seams]
LEAST_STEPS = {"call": 15, "statement": 4, "write": 5}
at_every_seam = pytest.mark.parametrize(
    ("store_kind", "seam"), SEAMS, ids=[f"{store_kind.name}-{seam}" for store_kind, seam in SEAMS]
)


@pytest.mark.parametrize("verb", WRITERS)
@at_every_seam
def test_killed_before_any_step(folder: Path, store_kind: StoreKind, seam: str, verb: str) -> None:
    origin, wreck = folder / "origin", folder / "wreck"
    sample = prepared(store_kind, origin)

    def work(acknowledge: Callable[[str], None]) -> None:
        WRITERS[verb](Registry(store_kind.open(wreck)), sample)
        acknowledge("done")

    histories = []
    copied(origin, wreck)
    for _step, acknowledged in kill_points(store_kind.seams[seam], work):
        histories.append((acknowledged, looked_at(store_kind, wreck, sample)))
        copied(origin, wreck)
    assert len(histories) > LEAST_STEPS[seam], "the seam no longer reaches the steps"
    (done, expected) = histories[-1]
    assert (done, expected == []) == (["done"], False)
    for acknowledged, history in histories:
        check_history(expected, history, acknowledged=bool(acknowledged))


def prepared(store_kind: StoreKind, place: Path) -> SampleJobs:
    store_kind.make(place)
    store = store_kind.open(place)
    sample = SampleJobs(Registry(store), "run")
    store.close()
    return sample


Aside = tuple[Callable[["Store"], object], Callable[["Store"], object]]
"""The data beside the journal, with a write and a read of each."""

ASIDE: dict[str, Aside] = {
    "pause": (
        lambda store: store.pause(Pause(agent="codex", label=None, until=None, reason="r", made_at="now")),
        lambda store: [pause.as_dict() for pause in store.pauses()],
    ),
    "resume": (lambda store: store.resume("old", None), lambda store: [pause.as_dict() for pause in store.pauses()]),
    "keep secrets": (
        lambda store: store.keep_secrets("job", {"auth_token": "new"}),
        lambda store: (store.secrets("job"), store.secrets("other")),
    ),
}


@pytest.mark.parametrize("what", ASIDE)
@at_every_seam
def test_what_is_kept_beside_the_journal_is_old_or_new(
    folder: Path, store_kind: StoreKind, seam: str, what: str
) -> None:
    origin, wreck = folder / "origin", folder / "wreck"
    write, read = ASIDE[what]
    prepared(store_kind, origin)
    store = store_kind.open(origin)
    store.pause(Pause(agent="old", label=None, until=None, reason="r", made_at="before"))
    store.keep_secrets("other", {"auth_token": "old"})
    before = read(store)
    store.close()

    def work(acknowledge: Callable[[str], None]) -> None:
        write(store_kind.open(wreck))
        acknowledge("done")

    found = []
    copied(origin, wreck)
    for _step, acknowledged in kill_points(store_kind.seams[seam], work):
        store = store_kind.open(wreck)
        found.append((acknowledged, read(store)))
        check_store(store_kind, wreck, store)
        store.close()
        copied(origin, wreck)
    after = found[-1][1]
    assert after != before
    assert all(seen in ((after,) if acknowledged else (before, after)) for acknowledged, seen in found)


@at_every_seam
def test_killed_while_the_store_is_made(folder: Path, store_kind: StoreKind, seam: str) -> None:
    place = folder / "new"

    def work(acknowledge: Callable[[str], None]) -> None:
        store_kind.make(place)
        acknowledge(Registry(store_kind.open(place)).register(prompt="first", agent="codex").job.job_id)

    steps = 0
    for _step, acknowledged in kill_points(store_kind.seams[seam], work):
        steps += 1
        store_kind.make(place)
        store = store_kind.open(place)
        check_store(store_kind, place, store)
        assert {*acknowledged} <= {job.job_id for job in store.select(Query())}
        assert Registry(store).register(prompt="next", agent="codex").created
        store.close()
        shutil.rmtree(place)
    assert steps > LEAST_STEPS[seam], "the seam no longer reaches the steps"


def test_killed_while_the_database_is_rebuilt(folder: Path) -> None:
    """Jobs, events, archive, pauses and generations are there after the next try, at any step of the kill."""
    store_kind, origin, wreck = STORE_KINDS["files"], folder / "origin", folder / "wreck"
    sample = prepared(store_kind, origin)
    store = store_kind.open(origin)
    store.pause(Pause(agent="old", label=None, until=None, reason="r", made_at="before"))
    assert store.archive([sample.ended]) == [sample.ended]
    before = known(store)
    store.close()

    def work(acknowledge: Callable[[str], None]) -> None:
        rebuild(str(store_kind.path(wreck)), SystemClock(), 10.0)
        acknowledge("done")

    copied(origin, wreck)
    steps = 0
    for _step, _acknowledged in kill_points(store_kind.seams["call"], work):
        steps += 1
        store = store_kind.open(wreck)
        assert known(store) == before
        check_files(store_kind, wreck, store)
        store.close()
        copied(origin, wreck)
    assert steps > 100, "the seam no longer reaches the calls"


def known(store: Store) -> tuple[object, ...]:
    """Everything that a store contains, without the journal."""
    jobs = {job.job_id: (job.to_json(), store.events(job.job_id)) for job in store.select(Query())}
    archived = [(kept.job.to_json(), kept.events) for kept in store.archive_contents()]
    return jobs, archived, [pause.as_dict() for pause in store.pauses()], store.generations()


@at_every_seam
def test_a_takeover_by_a_killed_generation_is_completed_by_its_next_command(
    folder: Path, store_kind: StoreKind, seam: str
) -> None:
    origin, wreck = folder / "origin", folder / "wreck"
    sample = prepared(store_kind, origin)

    def work(acknowledge: Callable[[str], None]) -> None:
        Registry(store_kind.open(wreck)).announce(sample.agent, "second")
        acknowledge("done")

    copied(origin, wreck)
    for _step, acknowledged in kill_points(store_kind.seams[seam], work):
        store = store_kind.open(wreck)
        assert not acknowledged or store.get(sample.running).claimant is None
        registry = Registry(store)
        registry.announce(sample.agent, "second")
        assert registry.get(sample.running).status == "pending"
        with pytest.raises(GenerationLost):
            registry.announce(sample.agent, "first")
        check_store(store_kind, wreck, store)
        store.close()
        copied(origin, wreck)
