"""Sessions as a table, for a person at a terminal; rich costs several bare starts, so that only they pay for it."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mam.cli.render.text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

STYLES = {
    "live": "green", "there": "green", "gone": "red", "expired": "red", "malformed": "red", "invalid": "red",
    "unknown": "yellow", "newer": "yellow", "stopped": "dim",
}  # fmt: skip
"""The word is always there too: no colour is needed alone."""


def put_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*(Text(one_line(word), style=STYLES.get(word, "")) for word in row))
    Console(highlight=False).print(table)
