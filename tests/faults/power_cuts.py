"""Records one life of a registry and tries every power cut that could have ended it."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from mam.errors import MamError
from tests.faults.invariants import check_store
from tests.faults.power import Cutting, power_cuts, written
from tests.faults.recording import recorded
from tests.faults.store_kinds import Boot, Home

if TYPE_CHECKING:
    from mam.stores.port import Entry, Store


def cut_everywhere(home: Home, folder: Path, seed: int, acts: int) -> int:
    """How many cuts were tried; all of them are survived, or this raises."""
    root, after = folder / "root", folder / "after"
    root.mkdir()
    steps = recorded(["tests.faults.random_life", home.name, str(root / "place"), str(seed), str(acts)], root)
    whole = _entries(home.open(root / "place"))
    cuts = 0
    for cutting in power_cuts(steps, random.Random(seed)):
        cuts += 1
        written(cutting.disk, after)
        try:
            _check(home, after / "place", cutting, whole)
        except (AssertionError, MamError) as error:
            raise AssertionError(f"seed {seed}, {acts} acts on {home.name}, cut {cutting.told}: {error}") from error
        shutil.rmtree(after)
    return cuts


def _check(home: Home, place: Path, cutting: Cutting, whole: list[Entry]) -> None:
    """A sound store whose journal is the beginning of the one that was written, with all that anybody had heard of."""
    heard = int(cutting.heard[-1]) if cutting.heard else 0
    home.make(place)
    store = home.open(place, Boot("after the cut"))
    try:
        check_store(home, place, store)
        found = _entries(store, close=False)
        assert [_known(entry) for entry in found] == [_known(entry) for entry in whole[: len(found)]], "another story"
        assert len(found) >= heard, f"{heard} entries were acknowledged, {len(found)} are there"
    finally:
        store.close()


def _known(entry: Entry) -> tuple[object, ...]:
    return (entry.number, entry.job_id, entry.fields, entry.lines)


def _entries(store: Store, *, close: bool = True) -> list[Entry]:
    found = list(store.entries(None))
    if close:
        store.close()
    return found
