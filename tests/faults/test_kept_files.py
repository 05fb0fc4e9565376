"""The small files beside the store are damaged at any byte: mam names them, and neither trusts nor discards them.

None of these files has a checksum unless a test states it. A flipped bit that leaves valid JSON with other content is
a limit that docs/guarantees.md names.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mam.agents.acts import publish
from mam.agents.files_directory import FilesDirectory
from mam.agents.lookup import FOUND
from mam.errors import MamError
from mam.inbox.ledger import DATABASE
from mam.registry import Registry
from mam.stores.port import Query
from tests.faults.damage import damaged, with_every_damage
from tests.faults.session_histories import AGENT, LONG, record_of
from tests.faults.store_kinds import STORE_KINDS
from tests.inbox.world import WHERE, World

if TYPE_CHECKING:
    from mam.stores.port import Store

pytestmark = pytest.mark.timeout(1200)  # guards against hanging only, also on a loaded machine

FILES = STORE_KINDS["files"]


@pytest.fixture
def origin(folder: Path) -> Path:
    """A registry with a secret."""
    place = folder / "origin"
    FILES.make(place)
    store = FILES.open(place)
    registry = Registry(store)
    for job_id in ("runs", "newest"):
        registry.register(prompt="p", agent="codex", job_id=job_id)
    store.keep_secrets("runs", {"auth_token": "t"})
    store.close()
    return place


def others_are_well(store: Store) -> None:
    assert {job.job_id for job in store.select(Query())} >= {"runs", "newest"}
    _register(store)


def _register(store: Store) -> None:
    assert Registry(store).register(prompt="next", agent="codex", label="others").created


@with_every_damage
def test_damaged_secrets_are_named(origin: Path, damage: str) -> None:
    store = FILES.open(origin)
    whole = store.secrets("runs")
    store.close()
    file = next(file for file in (origin / "jobs/.store").iterdir() if file.name.startswith("secrets"))
    for at, place, spoilt in damaged(origin, str(file.relative_to(origin)), damage, stride=5):
        store = FILES.open(place)
        try:
            found = store.secrets("runs")
        except MamError as error:
            assert "secrets" in str(error), at  # noqa: PT017
        else:
            kept = [one.read_bytes() for one in (place / "jobs/.store").glob("secrets*")]
            assert found == whole or spoilt in kept, f"byte {at}: discarded"
        others_are_well(store)
        store.close()


@with_every_damage
def test_a_damaged_record_of_a_session_is_named(folder: Path, damage: str) -> None:
    origin = folder / "origin"
    directory = FilesDirectory(str(origin))
    directory.change(AGENT, publish(record_of("first"), LONG))
    directory.change("other", publish(record_of("first", "other"), LONG))
    for at, place, spoilt in damaged(origin, f"live_agents/{AGENT}/record.json", damage, stride=5):
        directory = FilesDirectory(str(place))
        lookup = directory.read(AGENT)
        assert directory.read("other").kind == FOUND, at
        if lookup.kind != FOUND:
            assert lookup.reason, at
            assert (place / f"live_agents/{AGENT}/record.json").read_bytes() == spoilt, "mam changed the file"
            try:
                directory.change(AGENT, publish(record_of("second"), LONG))
            except MamError:
                continue  # of a newer version: it stays
            kept = [file.read_bytes() for file in place.rglob("*") if file.is_file()]
            assert spoilt in kept, f"byte {at}: discarded"


@with_every_damage
def test_a_damaged_ledger_of_an_inbox_loses_no_file(folder: Path, damage: str) -> None:
    """An unreadable ledger stops the inbox. mam fills an empty one again from the registry. One file still becomes one
    job."""
    place, saved = folder / "place", folder / "saved"
    place.mkdir()
    world = World(place)
    world.drop("x.prompt.md")
    world.open().run_cycle()
    world.close()
    place.rename(saved)
    (name,) = [file.relative_to(saved) for file in saved.rglob(DATABASE)]
    for at, wreck, spoilt in damaged(saved, str(name), damage, stride=997):
        wreck.rename(place)  # jobs know the root of their inbox
        world = World(place)
        try:
            world.steady()
        except MamError as error:
            assert DATABASE in str(error), f"byte {at}: {error}"  # noqa: PT017
            assert (place / name).stat().st_size >= len(spoilt)
        assert len(world.all_jobs()) == 1, f"byte {at}: one file, one job"
        world.close()
        shutil.rmtree(place)


@with_every_damage
@pytest.mark.parametrize("file", ["job.json", "state"])
def test_the_mirror_of_an_inbox_is_rebuilt(folder: Path, damage: str, file: str) -> None:
    origin = folder / "origin"
    origin.mkdir()
    world = World(origin)
    world.drop("x.prompt.md")
    world.drop("y.prompt.md")
    world.open().run_cycle()
    job_id = world.all_jobs()[0].job_id
    whole = {job.job_id: world.mirrored(job.job_id) for job in world.all_jobs()}
    world.close()
    mirrored = next(origin.rglob(f"{job_id}/{file}"))
    for at, place, _spoilt in damaged(origin, str(mirrored.relative_to(origin)), damage, stride=23):
        world = World(place)
        world.steady()
        assert {name: world.mirrored(name)["state"] for name in whole} == dict.fromkeys(whole, "queued"), at
        assert world.files("inbox") == [f"{WHERE}/x.running.md", f"{WHERE}/y.running.md"]
        json.loads((place / mirrored.relative_to(origin)).with_name("job.json").read_bytes())
        world.close()
