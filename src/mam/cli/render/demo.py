"""Output of `mam demo`: a line for each step, on a terminal above a chart, and a summary."""

from __future__ import annotations

import os
import sys

from mam.cli.render.demo_chart import Workers, chart, legend, plain
from mam.cli.render.streams import print_row
from mam.cli.render.text import one_line
from mam.demo.demo_jobs import KILLED_WORKER, OTHER_WORKERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from rich.console import Console
    from rich.text import Text

    from mam.cli.render.demo_chart import Cell
    from mam.demo.promises import Promise
    from mam.demo.sandbox import Sandbox
    from mam.demo.timelines import JobTimelines, Timeline

OWNERS = (KILLED_WORKER, *OTHER_WORKERS)
PIPE_WIDTH, WIDTH_MOST = 100, 140
REFRESHES = 8
NEXT = (
    ("mam run -- make test", "run one command and follow it"),
    ('mam register "…" --agent claude-code', "register a job for an agent"),
    ("mam worker -s shell --concurrency 4", "claim and run jobs"),
    ("mam watch", "watch the jobs live"),
    ("mam --help", "all verbs"),
)


class SilentOutput:
    """For --json, which prints one document at the end."""

    def __init__(self, timelines: JobTimelines) -> None:
        self._timelines = timelines

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        """Nothing to close."""

    def show_step(self, at: float, text: str) -> None:
        """Prints nothing."""

    def show_summary(self, promises: Sequence[Promise], kept: Sandbox | None) -> None:
        """Prints nothing."""

    def _lines(self, width: int) -> list[list[Cell]]:
        by_job = parents_first(list(self._timelines.by_job.values()))
        workers = Workers(owners=OWNERS, killed_at=self._timelines.killed_at)
        return [*chart(by_job, self._timelines.moment, width, workers), [], *legend(workers)] if by_job else []


class PlainOutput(SilentOutput):
    def show_step(self, at: float, text: str) -> None:
        print_row(f"{at:5.1f} s  {text}")
        sys.stdout.flush()

    def show_summary(self, promises: Sequence[Promise], kept: Sandbox | None) -> None:
        print_row("")
        for line in plain(self._lines(PIPE_WIDTH)):
            print_row(line)
        print_row("")
        for promise in promises:
            print_row(f"{'kept' if promise.kept else 'BROKEN':<6}  {promise.text}")
        for line in _closing(kept):
            print_row(line)


class LiveOutput(SilentOutput):
    """For a terminal."""

    def __init__(self, timelines: JobTimelines) -> None:
        from rich.console import Console
        from rich.live import Live

        super().__init__(timelines)
        self._console: Console = Console(highlight=False)
        self._live = Live(
            console=self._console, get_renderable=self._drawn, refresh_per_second=REFRESHES, transient=True,
            redirect_stdout=False, redirect_stderr=False,
        )  # fmt: skip

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._live.stop()

    def show_step(self, at: float, text: str) -> None:
        from rich.text import Text

        self._console.print(Text.assemble((f"{at:5.1f} s", "dim"), "  ", one_line(text)))

    def show_summary(self, promises: Sequence[Promise], kept: Sandbox | None) -> None:
        from rich.text import Text

        self._console.print(self._drawn())
        self._console.print()
        for promise in promises:
            mark = ("✔ ", "bold green") if promise.kept else ("✖ ", "bold red")
            self._console.print(Text.assemble(mark, promise.text))
        for line in _closing(kept):
            command, _, meaning = line.partition("   ")
            self._console.print(Text.assemble((command, "bold" if meaning else ""), ("   " * bool(meaning)), meaning))

    def _drawn(self) -> Text:
        from rich.text import Text

        width = min(self._console.width, WIDTH_MOST)
        texts = [Text.assemble(*((cell.text, cell.style) for cell in line)) for line in self._lines(width)]
        for text in texts:
            text.truncate(self._console.width)
        return Text("\n").join([Text(), *texts])


def make_output(timelines: JobTimelines, *, as_json: bool, live: bool) -> SilentOutput:
    return SilentOutput(timelines) if as_json else LiveOutput(timelines) if live else PlainOutput(timelines)


def parents_first(by_job: list[Timeline]) -> list[Timeline]:
    """In the order of registration, each job followed by its children."""
    roots = [timeline for timeline in by_job if timeline.parent is None]
    return [
        found
        for root in roots
        for found in (root, *(timeline for timeline in by_job if timeline.parent == root.job_id))
    ]


def _path_hint() -> list[str]:
    """`make demo` installs mam in a virtual environment that is not on PATH. PATH begins with the sandbox."""
    import shutil
    from shlex import quote

    if shutil.which("mam", path=os.environ["PATH"].partition(os.pathsep)[2]):
        return []
    return [f"  export PATH={quote(os.path.dirname(sys.executable))}:$PATH", ""]


def _closing(kept: Sandbox | None) -> list[str]:
    longest = max(len(command) for command, _ in NEXT)
    lines = ["", "Next commands:", "", *_path_hint()]
    lines += [*(f"  {command:<{longest}}   {meaning}" for command, meaning in NEXT), ""]
    if kept is None:
        return [*lines, "The demo ran in a temporary directory, which mam has removed; --keep keeps it."]
    return [
        *lines,
        "mam kept the directory. To inspect it:",
        "",
        f"  cd {kept.project}; export XDG_STATE_HOME={kept.state}",
        "  mam list; mam logs JOB; mam output JOB; mam explain JOB",
    ]
