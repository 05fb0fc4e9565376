"""Splits long work into batches, one act each, so that other processes get the store in between."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TypeVar

    T = TypeVar("T")

AT_ONCE = 500


def batches(things: Iterable[T]) -> Iterator[list[T]]:
    batch: list[T] = []
    for thing in things:
        batch.append(thing)
        if len(batch) == AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch
