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
from tests.faults.invariants import check_files, check_store, check_story, looked_at
from tests.faults.killing import kill_points
from tests.faults.store_kinds import HOMES, Home, copied
from tests.stories import WRITERS, Cast

if TYPE_CHECKING:
    from mam.stores.port import Store

pytestmark = pytest.mark.timeout(1200)  # guards against hanging only, also on a loaded machine

SEAMS = [(home, seam) for home in HOMES.values() for seam in home.seams]
LEAST_STEPS = {"call": 15, "statement": 4, "write": 5}
at_every_seam = pytest.mark.parametrize(("home", "seam"), SEAMS, ids=[f"{home.name}-{seam}" for home, seam in SEAMS])


@pytest.mark.parametrize("verb", WRITERS)
@at_every_seam
def test_killed_before_any_step(folder: Path, home: Home, seam: str, verb: str) -> None:
    origin, wreck = folder / "origin", folder / "wreck"
    cast = prepared(home, origin)

    def work(acknowledge: Callable[[str], None]) -> None:
        WRITERS[verb](Registry(home.open(wreck)), cast)
        acknowledge("done")

    stories = []
    copied(origin, wreck)
    for _step, acknowledged in kill_points(home.seams[seam], work):
        stories.append((acknowledged, looked_at(home, wreck, cast)))
        copied(origin, wreck)
    assert len(stories) > LEAST_STEPS[seam], "the seam no longer reaches the steps"
    (done, expected) = stories[-1]
    assert (done, expected == []) == (["done"], False)
    for acknowledged, story in stories:
        check_story(expected, story, acknowledged=bool(acknowledged))


def prepared(home: Home, place: Path) -> Cast:
    home.make(place)
    store = home.open(place)
    cast = Cast(Registry(store), "run")
    store.close()
    return cast


Aside = tuple[Callable[["Store"], object], Callable[["Store"], object]]
"""What is kept beside the journal: how it is written, and how it is read."""

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
def test_what_is_kept_beside_the_journal_is_old_or_new(folder: Path, home: Home, seam: str, what: str) -> None:
    origin, wreck = folder / "origin", folder / "wreck"
    write, read = ASIDE[what]
    prepared(home, origin)
    store = home.open(origin)
    store.pause(Pause(agent="old", label=None, until=None, reason="r", made_at="before"))
    store.keep_secrets("other", {"auth_token": "old"})
    before = read(store)
    store.close()

    def work(acknowledge: Callable[[str], None]) -> None:
        write(home.open(wreck))
        acknowledge("done")

    found = []
    copied(origin, wreck)
    for _step, acknowledged in kill_points(home.seams[seam], work):
        store = home.open(wreck)
        found.append((acknowledged, read(store)))
        check_store(home, wreck, store)
        store.close()
        copied(origin, wreck)
    after = found[-1][1]
    assert after != before
    assert all(seen in ((after,) if acknowledged else (before, after)) for acknowledged, seen in found)


@at_every_seam
def test_killed_while_the_store_is_made(folder: Path, home: Home, seam: str) -> None:
    place = folder / "new"

    def work(acknowledge: Callable[[str], None]) -> None:
        home.make(place)
        acknowledge(Registry(home.open(place)).register(prompt="first", agent="codex").job.job_id)

    steps = 0
    for _step, acknowledged in kill_points(home.seams[seam], work):
        steps += 1
        home.make(place)
        store = home.open(place)
        check_store(home, place, store)
        assert {*acknowledged} <= {job.job_id for job in store.select(Query())}
        assert Registry(store).register(prompt="next", agent="codex").created
        store.close()
        shutil.rmtree(place)
    assert steps > LEAST_STEPS[seam], "the seam no longer reaches the steps"


def test_killed_while_the_database_is_rebuilt(folder: Path) -> None:
    """Jobs, events, archive, pauses and generations are there after the next try, at whatever step it was killed."""
    home, origin, wreck = HOMES["files"], folder / "origin", folder / "wreck"
    cast = prepared(home, origin)
    store = home.open(origin)
    store.pause(Pause(agent="old", label=None, until=None, reason="r", made_at="before"))
    assert store.archive([cast.ended]) == [cast.ended]
    before = known(store)
    store.close()

    def work(acknowledge: Callable[[str], None]) -> None:
        rebuild(str(home.path(wreck)), SystemClock(), 10.0)
        acknowledge("done")

    copied(origin, wreck)
    steps = 0
    for _step, _acknowledged in kill_points(home.seams["call"], work):
        steps += 1
        store = home.open(wreck)
        assert known(store) == before
        check_files(home, wreck, store)
        store.close()
        copied(origin, wreck)
    assert steps > 100, "the seam no longer reaches the calls"


def known(store: Store) -> tuple[object, ...]:
    """All that a store holds, without the journal."""
    jobs = {job.job_id: (job.to_json(), store.events(job.job_id)) for job in store.select(Query())}
    archived = [(kept.job.to_json(), kept.events) for kept in store.archive_contents()]
    return jobs, archived, [pause.as_dict() for pause in store.pauses()], store.generations()


@at_every_seam
def test_a_takeover_by_a_killed_generation_is_completed_by_its_next_command(
    folder: Path, home: Home, seam: str
) -> None:
    origin, wreck = folder / "origin", folder / "wreck"
    cast = prepared(home, origin)

    def work(acknowledge: Callable[[str], None]) -> None:
        Registry(home.open(wreck)).announce(cast.agent, "second")
        acknowledge("done")

    copied(origin, wreck)
    for _step, acknowledged in kill_points(home.seams[seam], work):
        store = home.open(wreck)
        assert not acknowledged or store.get(cast.running).claimant is None
        registry = Registry(store)
        registry.announce(cast.agent, "second")
        assert registry.get(cast.running).status == "pending"
        with pytest.raises(GenerationLost):
            registry.announce(cast.agent, "first")
        check_store(home, wreck, store)
        store.close()
        copied(origin, wreck)
