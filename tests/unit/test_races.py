"""The race harness itself: it must not report a failure as a success."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from mam.stores.memory import MemoryStore
from mam.testing.races import RacePool, RacerDied, RacerFailed

if TYPE_CHECKING:
    from mam.stores.port import Store
    from mam.testing.races import Report

BOTH = pytest.mark.parametrize("processes", [True, False], ids=["processes", "threads"])


def answer(_store: Store, report: Report, *, value: int) -> tuple[int, int]:
    report("working")
    return value, os.getpid()


def explode(_store: Store, _report: Report) -> None:
    raise ValueError("boom")


def vanish(_store: Store, report: Report) -> None:
    report("going")
    os._exit(3)


def count_for_ever(_store: Store, report: Report) -> None:
    number = 0
    while True:
        number += 1
        report(number)


def _crew(processes: bool) -> RacePool:
    return RacePool(MemoryStore, processes=processes)


@BOTH
def test_results_come_back_in_the_order_of_the_tasks(processes: bool) -> None:
    with _crew(processes) as pool:
        results = pool.race([partial(answer, value=value) for value in range(5)])

    assert [value for value, _ in results] == [0, 1, 2, 3, 4]
    assert len({pid for _, pid in results} | {os.getpid()}) == (6 if processes else 1)


@BOTH
def test_a_member_that_raises_fails_the_race(processes: bool) -> None:
    with _crew(processes) as pool, pytest.raises(RacerFailed, match="boom"):
        pool.race([partial(answer, value=1), explode])


def test_a_member_that_vanishes_fails_the_race() -> None:
    with _crew(True) as pool, pytest.raises(RacerDied):
        pool.race([vanish])


@BOTH
def test_reports_can_be_read_while_a_member_works_and_after(processes: bool) -> None:
    with _crew(processes) as pool:
        racer = pool.start(partial(answer, value=7))

        assert racer.result()[0] == 7
        assert racer.report() == "working"
        with pytest.raises(RacerDied):
            racer.report()


def test_a_killed_member_leaves_all_that_it_reported() -> None:
    with _crew(True) as pool:
        racer = pool.start(count_for_ever)
        early = [racer.report() for _ in range(10)]

        rest: list[Any] = racer.kill()

    assert early + rest == list(range(1, len(early + rest) + 1))
