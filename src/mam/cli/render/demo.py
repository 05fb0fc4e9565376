"""How the demonstration is told: line by line, on a terminal above a chart that grows, and at the end as a whole."""

from __future__ import annotations

import os
import sys

from mam.cli.render.demo_chart import Crew, chart, legend, plain
from mam.cli.render.streams import put
from mam.cli.render.text import one_line
from mam.demo.parts import DOOMED, HELPERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from rich.console import Console
    from rich.text import Text

    from mam.cli.render.demo_chart import Cell
    from mam.demo.chronicle import Chronicle, Life
    from mam.demo.promises import Promise
    from mam.demo.stage import Stage

OWNERS = (DOOMED, *HELPERS)
PIPE_WIDTH, WIDTH_MOST = 100, 140
REFRESHES = 8
NEXT = (
    ("mam run -- make test", "one command, followed to its end"),
    ('mam register "…" --agent claude-code', "hand work out; whoever serves that label takes it"),
    ("mam worker -s shell --concurrency 4", "take work, one after the other"),
    ("mam watch", "all of it, live, what needs you first"),
    ("mam --help", "the other verbs"),
)


class Silent:
    """For programs, which read the document at the end."""

    def __init__(self, chronicle: Chronicle) -> None:
        self._chronicle = chronicle

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        """Nothing to take down."""

    def tell(self, at: float, words: str) -> None:
        """Nobody listens."""

    def conclude(self, promises: Sequence[Promise], kept: Stage | None) -> None:
        """Nor now."""

    def _lines(self, width: int) -> list[list[Cell]]:
        lives = in_order(list(self._chronicle.lives.values()))
        crew = Crew(owners=OWNERS, deaths=self._chronicle.deaths)
        return [*chart(lives, self._chronicle.moment, width, crew), [], *legend(crew)] if lives else []


class Plain(Silent):
    def tell(self, at: float, words: str) -> None:
        put(f"{at:5.1f} s  {words}")
        sys.stdout.flush()

    def conclude(self, promises: Sequence[Promise], kept: Stage | None) -> None:
        put("")
        for line in plain(self._lines(PIPE_WIDTH)):
            put(line)
        put("")
        for promise in promises:
            put(f"{'kept' if promise.kept else 'BROKEN':<6}  {promise.words}")
        for line in _closing(kept):
            put(line)


class Lively(Silent):
    """For a person at a terminal."""

    def __init__(self, chronicle: Chronicle) -> None:
        from rich.console import Console
        from rich.live import Live

        super().__init__(chronicle)
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

    def tell(self, at: float, words: str) -> None:
        from rich.text import Text

        self._console.print(Text.assemble((f"{at:5.1f} s", "dim"), "  ", one_line(words)))

    def conclude(self, promises: Sequence[Promise], kept: Stage | None) -> None:
        from rich.text import Text

        self._console.print(self._drawn())
        self._console.print()
        for promise in promises:
            mark = ("✔ ", "bold green") if promise.kept else ("✖ ", "bold red")
            self._console.print(Text.assemble(mark, promise.words))
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


def teller(chronicle: Chronicle, *, as_json: bool, lively: bool) -> Silent:
    return Silent(chronicle) if as_json else Lively(chronicle) if lively else Plain(chronicle)


def in_order(lives: list[Life]) -> list[Life]:
    """As they were registered, each followed by the jobs that it handed out."""
    roots = [life for life in lives if life.parent is None]
    return [found for root in roots for found in (root, *(life for life in lives if life.parent == root.job_id))]


def _so_that_it_is_found() -> list[str]:
    """`make demo` has mam in a private environment, where no shell looks for it; PATH begins with the stage."""
    import shutil
    from shlex import quote

    if shutil.which("mam", path=os.environ["PATH"].partition(os.pathsep)[2]):
        return []
    return [f"  export PATH={quote(os.path.dirname(sys.executable))}:$PATH", ""]


def _closing(kept: Stage | None) -> list[str]:
    longest = max(len(command) for command, _ in NEXT)
    lines = ["", "Type next:", "", *_so_that_it_is_found()]
    lines += [*(f"  {command:<{longest}}   {meaning}" for command, meaning in NEXT), ""]
    if kept is None:
        return [*lines, "What you saw took place in a temporary directory, which is gone; --keep keeps it."]
    return [
        *lines,
        "What you saw was kept. To look around in it:",
        "",
        f"  cd {kept.project}; export XDG_STATE_HOME={kept.state}",
        "  mam list; mam logs JOB; mam output JOB; mam explain JOB",
    ]
