"""Processes that claim and complete a number of jobs on request, so that several kinds can alternate."""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence

from tools.bench.common import ROOT


class WorkerProcesses:
    """Processes of one kind. Each prints `ready`. For each line with a number, it does so many jobs and answers."""

    def __init__(self, command: Sequence[str], size: int) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
        self._processes = [
            subprocess.Popen(
                command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            for _ in range(size)
        ]  # fmt: skip
        for process in self._processes:
            _answer(process)

    def work(self, each: int) -> float:
        """Seconds from the start of all to the end of the last, for each job that was done."""
        start = time.perf_counter()
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write(f"{each}\n")
            process.stdin.flush()
        for process in self._processes:
            _answer(process)
        return (time.perf_counter() - start) / (each * len(self._processes))

    def close(self) -> None:
        for process in self._processes:
            process.communicate()


def _answer(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    answer = process.stdout.readline()
    if not answer:
        raise RuntimeError(f"{process.args!r} ended with {process.wait()}")
    return answer


def median_seconds(commands: Mapping[str, Sequence[str]], size: int, rounds: int, each: int) -> dict[str, float]:
    """The median time of a job for each kind of process; in another order in each round, as `Measured` does it."""
    groups = {name: WorkerProcesses(command, size) for name, command in commands.items()}
    seconds: dict[str, list[float]] = {name: [] for name in groups}
    for group in groups.values():
        group.work(each)  # to warm up
    names, chance = list(groups), random.Random(rounds)
    for _ in range(rounds):
        chance.shuffle(names)
        for name in names:
            seconds[name].append(groups[name].work(each))
    for group in groups.values():
        group.close()
    return {name: statistics.median(times) for name, times in seconds.items()}
