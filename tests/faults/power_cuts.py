"""Records one run of a registry and tries every power cut that could have ended it."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from mam.errors import MamError
from tests.faults.invariants import check_store
from tests.faults.power import PowerCut, power_cuts, written
from tests.faults.recording import recorded
from tests.faults.store_kinds import Boot, StoreKind

if TYPE_CHECKING:
    from mam.stores.port import Entry, Store


def cut_everywhere(store_kind: StoreKind, folder: Path, seed: int, acts: int) -> int:
    """Returns how many cuts were tried; raises if a store did not survive one."""
    root, after = folder / "root", folder / "after"
    root.mkdir()
    steps = recorded(["tests.faults.random_life", store_kind.name, str(root / "place"), str(seed), str(acts)], root)
    whole = _entries(store_kind.open(root / "place"))
    cuts = 0
    for cut in power_cuts(steps, random.Random(seed)):
        cuts += 1
        written(cut.disk, after)
        try:
            _check(store_kind, after / "place", cut, whole)
        except (AssertionError, MamError) as error:
            raise AssertionError(f"seed {seed}, {acts} acts on {store_kind.name}, cut {cut.told}: {error}") from error
        shutil.rmtree(after)
    return cuts


def _check(store_kind: StoreKind, place: Path, cut: PowerCut, whole: list[Entry]) -> None:
    """A sound store whose journal is a beginning of the written one, with everything that was acknowledged."""
    heard = int(cut.heard[-1]) if cut.heard else 0
    store_kind.make(place)
    store = store_kind.open(place, Boot("after the cut"))
    try:
        check_store(store_kind, place, store)
        found = _entries(store, close=False)
        assert [_known(entry) for entry in found] == [_known(entry) for entry in whole[: len(found)]], "it differs"
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
