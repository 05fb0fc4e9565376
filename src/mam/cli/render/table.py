"""Tables for a terminal. Imported only there, because the import of rich takes long."""

from __future__ import annotations

import os

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mam.cli.render.status_styles import STATUS_STYLES
from mam.cli.render.text import first_line, one_line
from mam.jobs.input_rules import ID_PREFIX_SHOWN
from mam.jobs.pause import blocking_pause
from mam.jobs.question import count_open
from mam.jobs.status import COMPLETED, ERROR, PENDING, RUNNING
from mam.jobs.sweep import is_quiet
from mam.util.clock import parse_time
from mam.util.human_time import format_age

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mam.jobs.pause import Pause
    from mam.jobs.record import Job
    from mam.util.clock import Moment

SHORT = ("JOB", "STATUS", "AGENT", "LABEL", "HOST", "AGE")
DISPENSABLE = ("AGENT", "AGE", "LABEL", "HOST")
"""The columns that a narrow terminal omits, in this order."""
NAME_MOST, PROMPT_LEAST = 24, 20

WORD_STYLES = {
    "live": "green", "there": "green", "gone": "red", "expired": "red", "malformed": "red", "invalid": "red",
    "unknown": "yellow", "newer": "yellow", "stopped": "dim",
}  # fmt: skip
"""Colours of words that are always shown too."""


def print_jobs(jobs: Sequence[Job], now: Moment, pauses: Sequence[Pause] = ()) -> None:
    """The prompt gets the width that the short columns leave."""
    console = Console(highlight=False)
    rows = [_cells(job, now, pauses) for job in jobs]
    widths = {name: max(len(name), *(row[name].cell_len for row in rows)) for name in SHORT}
    if {job.host for job in jobs} <= {None, os.uname().nodename}:
        del widths["HOST"]
    wanted = min(PROMPT_LEAST, max(row["PROMPT"].cell_len for row in rows))
    for name in DISPENSABLE:
        if _left(console, widths) < wanted:
            widths.pop(name, None)
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name, width in widths.items():
        table.add_column(name, width=width, justify="right" if name == "AGE" else "left", no_wrap=True)
    table.add_column("PROMPT", no_wrap=True)
    for row in rows:
        row["PROMPT"].truncate(max(1, _left(console, widths)), overflow="ellipsis")
        table.add_row(*(row[name] for name in (*widths, "PROMPT")))
    console.print(table)


def _left(console: Console, widths: dict[str, int]) -> int:
    return console.width - sum(width + 2 for width in widths.values())


def _cells(job: Job, now: Moment, pauses: Sequence[Pause]) -> dict[str, Text]:
    names = [Text(one_line(name)) for name in (job.agent, job.agent_session, job.host or "")]
    for name in names:
        name.truncate(NAME_MOST, overflow="ellipsis")
    old = format_age(now.wall_ms - parse_time(job.created_at))
    short = (Text(job.job_id[:ID_PREFIX_SHOWN]), status_text(job, now, pauses), *names, Text(old))
    return {**dict(zip(SHORT, short, strict=True)), "PROMPT": Text(first_line(job.prompt))}


def status_text(job: Job, now: Moment, pauses: Sequence[Pause] = ()) -> Text:
    """Icon, word and colour; each is sufficient alone."""
    icon, colour = STATUS_STYLES[job.status]
    if job.status is RUNNING and count_open(job):
        return Text(f"{icon} running (asks)", style="bold magenta")
    if is_quiet(job, now):
        return Text("▶ running (quiet)", style="bold red")
    if job.status is PENDING and blocking_pause(pauses, job, now) is not None:
        return Text("○ pending (paused)", style="dim cyan")
    if job.status is ERROR and job.seen is not None:
        return Text(f"{icon} {job.status} (seen)", style=f"dim {colour}")
    unchecked = " (unchecked)" if job.status is COMPLETED and not job.checked else ""
    return Text(f"{icon} {job.status}{unchecked}", style=colour)


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*(Text(one_line(word), style=WORD_STYLES.get(word, "")) for word in row))
    Console(highlight=False).print(table)
