"""Truncates a file at any byte or flips any of its bits, in a copy of its directory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.amount import DOSE
from tests.faults.store_kinds import copied

Damage = Callable[[bytes, int], bytes]
DAMAGES: dict[str, Damage] = {
    "cut off": lambda data, at: data[:at],
    "turned over": lambda data, at: data[:at] + bytes([data[at] ^ 0x15]) + data[at + 1 :],
}
with_every_damage = pytest.mark.parametrize("damage", DAMAGES)


def damaged(
    origin: Path, name: str, damage: str, stride: int, upto: int = 1 << 30
) -> Iterator[tuple[int, Path, bytes]]:
    """The directory with one file damaged at each byte, or each Nth byte, in turn; and the content of that file."""
    wreck = origin.parent / "wreck"
    data = (origin / name).read_bytes()
    assert data, f"{name} has no byte to damage"
    for at in range(0, min(len(data), upto), max(1, stride // DOSE)):
        copied(origin, wreck)
        spoilt = DAMAGES[damage](data, at)
        (wreck / name).write_bytes(spoilt)
        yield at, wreck, spoilt
