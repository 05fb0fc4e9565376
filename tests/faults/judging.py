"""What must be true of a store whatever happened to it, and of an act whose process was ended in the middle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from mam.testing.conformance.base import check_journal
from tests.faults.homes import Home

if TYPE_CHECKING:
    from mam.stores.port import Store
    from tests.stories import Cast, Story


def check_store(home: Home, place: Path, store: Store) -> None:
    """Whole records, complete numbers, a journal that tells the same, no complaint and no leftover."""
    check_journal(store)
    assert store.problems() == []
    numbers = [entry.number for entry in store.entries(None)]
    assert numbers == list(range(1, len(numbers) + 1)), f"entries are missing or doubled: {numbers}"
    if home.name == "files":
        for file in home.path(place).iterdir():
            assert not file.name.endswith(".tmp"), f"a leftover: {file.name}"
            if file.suffix == ".json":
                assert json.loads(file.read_bytes()) == store.get(file.stem).to_json()


def check_story(expected: Story, told: Story, *, acknowledged: bool) -> None:
    """All of the verb if it was acknowledged; else all of some of its acts, from the first on, and none in part."""
    assert not acknowledged or told == expected, f"acknowledged, and not there: {told}"
    beginnings = [expected[:acts] for acts in range(len(expected) + 1)]
    assert told in beginnings, f"told in part, or otherwise: {told}"


def looked_at(home: Home, place: Path, cast: Cast) -> Story:
    """What the next process finds there: a sound store, and this story."""
    store = home.open(place)
    try:
        check_store(home, place, store)
        return cast.story(store)
    finally:
        store.close()
