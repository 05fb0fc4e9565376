"""Findings of the doctor on a terminal: a mark and a sentence; below it the importance and the repair."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from mam.cli.render.text import one_line
from mam.doctor.finding import FINE, MENDED, NOTE, WRONG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.doctor.checks import Result

MARKS = {FINE: ("✔", "green"), NOTE: ("•", "yellow"), WRONG: ("✖", "bold red"), MENDED: ("✚", "cyan")}
CHECK_WIDTH = 10


class Page:
    def __init__(self) -> None:
        self._console = Console(highlight=False)
        self._last = ""

    def show(self, result: Result) -> None:
        finding = result.finding
        mark, style = MARKS[finding.state]
        check = result.check if result.check != self._last else ""
        self._last = result.check
        line = Table.grid(padding=(0, 1))
        line.add_column(width=1)
        line.add_column(width=CHECK_WIDTH, no_wrap=True)
        line.add_column(ratio=1, overflow="fold")
        text = f"repaired: {finding.what}" if finding.state == MENDED else finding.what
        line.add_row(
            Text(mark, style=style), Text(check, style="dim"), Text(one_line(text), style=style * (mark == "✖"))
        )
        self._console.print(line)
        if finding.state in (NOTE, WRONG):
            self._below(finding.why, "dim")
            if finding.mend:
                self._below(f"→ {finding.mend}", "bold")

    def _below(self, text: str, style: str) -> None:
        if text:
            self._console.print(Padding(Text(one_line(text), style=style, overflow="fold"), (0, 0, 0, CHECK_WIDTH + 3)))
