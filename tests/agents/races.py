"""Generations that publish the same name at the same moment."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from mam.agents.acts import publish, refresh
from mam.agents.errors import GenerationConflict
from mam.agents.record_parser import record_from
from mam.errors import GenerationLost
from mam.testing.races import RacePool
from tests.agents.records import a_record, stopped

if TYPE_CHECKING:
    from mam.agents.port import Directory

GENERATIONS = 12


def race(open_directory: Callable[[], Directory], rounds: int) -> None:
    """In every round exactly one generation publishes, the others are rejected at once, and the record is the
    winner's."""
    directory = open_directory()
    for number in range(0, rounds, 2):  # in every other round an older session exists
        record = record_from({**stopped(generation="before"), "agent_id": f"agent-{number}"})
        directory.change(record.agent_id, publish(record))
    barrier = multiprocessing.get_context("forkserver").Barrier(GENERATIONS)
    tasks = [partial(_publish_all, f"generation-{racer}", rounds, barrier) for racer in range(GENERATIONS)]
    with RacePool(open_directory, processes=True) as pool:  # type: ignore[arg-type]
        outcomes = pool.race(tasks)
    for number in range(rounds):
        winners = [racer for racer in range(GENERATIONS) if outcomes[racer][number]]
        assert len(winners) == 1, f"round {number}: {winners}"
        kept = directory.read(f"agent-{number}").record
        assert kept is not None
        assert kept.generation_id == f"generation-{winners[0]}"
    directory.close()


def _publish_all(
    generation: str, rounds: int, barrier: Any, directory: Directory, report: Callable[[Any], None]
) -> list[bool]:
    won = []
    for number in range(rounds):
        record = a_record(generation=generation, agent_id=f"agent-{number}")
        report(number)  # reports that the round is done
        barrier.wait(60)
        try:
            directory.change(record.agent_id, publish(record, 3600))
            won.append(True)
        except GenerationConflict:
            won.append(False)
        # The winner still owns the record a moment later, and a loser cannot get it by refreshing.
        try:
            directory.change(record.agent_id, refresh(generation))
            assert won[-1]
        except GenerationLost:
            assert not won[-1]
    return won
