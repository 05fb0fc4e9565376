"""Progress of `mam wait` and of long operations: lines in a pipe, a bar on a terminal."""

from __future__ import annotations

import sys
from contextlib import contextmanager

from mam.cli.render.streams import print_row, stdout_is_terminal
from mam.jobs.input_rules import ID_PREFIX_SHOWN
from mam.jobs.status import Status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Self

    from rich.progress import Progress

    from mam.jobs.record import Job


class EndedLines:
    """Prints a line for each job that ends."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        """Nothing to close."""

    def ended(self, job: Job) -> None:
        if stdout_is_terminal():
            why = f": {job.reason}" if job.reason and job.reason != job.status else ""
            print_row(f"{job.job_id[:ID_PREFIX_SHOWN]} {job.status}{why}")
        else:
            print_row(job.job_id, job.status)
        sys.stdout.flush()

    def show(self, jobs: Iterable[Job]) -> None:
        """A pipe gets no progress."""


class EndedBar(EndedLines):
    """The same, with a bar that shows the number of ended jobs and the status of the others."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._bar: Progress | None = None

    def __exit__(self, *_exception: object) -> None:
        self._pause()

    def ended(self, job: Job) -> None:
        # Both streams may be the same terminal, so the bar disappears while a line is written.
        self._pause()
        super().ended(job)

    def show(self, jobs: Iterable[Job]) -> None:
        counts = dict.fromkeys(Status, 0)
        for job in jobs:
            counts[job.status] += 1
        still = [f"{count} {status}" for status, count in counts.items() if count and not status.ended]
        if not still:
            return
        if self._bar is None:
            self._bar = _bar()
            self._task = self._bar.add_task("", total=self._total)
        done = sum(count for status, count in counts.items() if status.ended)
        self._bar.update(self._task, completed=done, description=", ".join(still))
        self._bar.start()

    def _pause(self) -> None:
        if self._bar is not None:
            self._bar.stop()


@contextmanager
def counting(what: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """A function that advances a progress bar on a terminal and does nothing in a pipe."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda _count: None
        return
    bars: list[Progress] = []

    def advance(count: int) -> None:
        """The first call creates the bar."""
        if not bars:
            bars.append(_counting_bar(what, total))
            bars[0].start()
        bars[0].advance(bars[0].task_ids[0], count)

    try:
        yield advance
    finally:
        for bar in bars:
            bar.stop()


def _counting_bar(what: str, total: int | None) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn(what), BarColumn(bar_width=24), MofNCompleteColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    bar.add_task("", total=total)
    return bar


def _bar() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    return Progress(
        SpinnerColumn(), BarColumn(bar_width=24), MofNCompleteColumn(), TextColumn("ended, {task.description}"),
        TimeElapsedColumn(), console=Console(stderr=True), transient=True, redirect_stdout=False, redirect_stderr=False,
    )  # fmt: skip
