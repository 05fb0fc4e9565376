"""Style the lines of `mam watch`. Foreign text is one line without markup."""

from __future__ import annotations

import re

from rich.text import Text

from mam.cli.render.status_styles import STATUS_STYLES
from mam.cli.render.text import first_line, one_line
from mam.cli.watch.layout import DONE, GAP, IN_ERROR, LABEL, MORE, NEEDS, PENDS, RUNS, TITLE, WAITS
from mam.events.event import STARTED
from mam.jobs.input_rules import ID_PREFIX_SHOWN
from mam.jobs.pause import Pause
from mam.jobs.status import COMPLETED, ERROR, PENDING, RUNNING
from mam.util.clock import Moment, parse_time
from mam.util.frozen import Frozen
from mam.util.human_time import format_age

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mam.cli.watch.layout import Item
    from mam.cli.watch.model import LastEvent
    from mam.jobs.record import Job

TITLES = {NEEDS: "bold red", RUNS: "bold yellow", IN_ERROR: "bold red", WAITS: "bold blue", PENDS: "bold cyan"}
ATTENTION_STYLES = {"asks": ("?", "bold magenta"), "yours": ("☞", "bold magenta"), "error": ("✖", "red")}
LABEL_MOST, OWNER_MOST, TEXT_LEAST, TEXT_BESIDE_OWNER = 18, 22, 24, 60
DISPENSABLE = ("by", "age", "label")
"""The columns that a narrow terminal omits, in this order."""
COLUMNS = ("id", "state", "label", "age", "by", "text")
_LONG_ID = re.compile(r"\b([0-9a-f]{8})[0-9a-f]{24}\b")
_AT_TIME = re.compile(r" at \d{4}-\d\d-\d\dT[\d:.]+Z,")


class DrawContext(Frozen):
    """Facts that a line needs beyond its job."""

    now: Moment
    pauses: Sequence[Pause]
    last_event: Callable[[str], LastEvent | None]
    explain: Callable[[Job], list[str]]


def draw(items: Sequence[Item], context: DrawContext, width: int, selected: str | None) -> list[Text]:
    """One line for each item."""
    cells = {at: _cells(item, context) for at, item in enumerate(items) if item.job is not None}
    widths = _widths(list(cells.values()), width)
    lines = []
    for at, item in enumerate(items):
        here = item.selectable and item.key == selected
        line = _row(cells[at], widths, item.depth) if at in cells else _other(item, context)
        if item.kind not in (TITLE, GAP):
            line = Text.assemble(("› ", "bold") if here else "  ", line)
        line.truncate(width, overflow="ellipsis", pad=True)
        if here:
            line.stylize("reverse")
        lines.append(line)
    return lines


def shorten_ids(sentence: str) -> str:
    """Shortens ids to the length that tables show."""
    return _LONG_ID.sub(r"\1", one_line(sentence))


def _other(item: Item, context: DrawContext) -> Text:
    if item.kind == TITLE:
        counted = "" if item.section == DONE else f"  {item.count:,}"
        return Text(f"{item.section.upper()}{counted}", style=TITLES.get(item.section, "bold"))
    if item.kind == MORE:
        return Text(f"… {item.count:,} more; ⏎ shows them", style="dim")
    if item.kind == LABEL:
        return _label(item, context)
    return Text()


def _label(item: Item, context: DrawContext) -> Text:
    icon, colour = STATUS_STYLES[PENDING]
    line = Text.assemble((f"{icon} {item.count:>6,}  ", colour), one_line(item.label))
    held = [_pause(context, agent, item.label) for agent in item.agents]
    paused = next((pause for pause in held if pause is not None), None)
    if paused is not None:
        partly = "" if all(held) else "partly "
        until = "" if paused.until is None else f" until {paused.until}"
        why = "" if paused.reason is None else f": {one_line(paused.reason)}"
        line.append(f"  {partly}paused{until}{why}", style="bold yellow")
    return line


def _pause(context: DrawContext, agent: str, label: str) -> Pause | None:
    return next((one for one in context.pauses if one.covers(agent, label) and one.is_active(context.now)), None)


def _cells(item: Item, context: DrawContext) -> dict[str, Text]:
    job = item.job
    assert job is not None
    label = Text(one_line(job.agent_session))
    label.truncate(LABEL_MOST, overflow="ellipsis")
    owner = Text(one_line(job.owner or "") if job.status is RUNNING else "", style="dim")
    owner.truncate(OWNER_MOST, overflow="ellipsis")
    return {
        "id": Text(job.job_id[:ID_PREFIX_SHOWN], style="bold"),
        "state": _state(item, job),
        "label": label,
        "age": Text(_age(job, context.now), style="dim"),
        "by": owner,
        "text": _text(item, job, context),
    }


def _state(item: Item, job: Job) -> Text:
    icon, colour = STATUS_STYLES[job.status]
    word = str(job.status)
    if item.attention is not None:
        word = item.attention.word
        icon, colour = ATTENTION_STYLES.get(word, (icon, "bold red"))
    elif job.status is ERROR and job.seen is not None:
        word, colour = "seen", f"dim {colour}"
    elif job.status is RUNNING and job.attempt > 1:
        word = f"try {job.attempt}"
    elif job.waiting_for:
        word = one_line(job.waiting_for)
    return Text(f"{icon} {word}", style=colour)


def _age(job: Job, now: Moment) -> str:
    since = job.claimed_at if job.status is RUNNING else job.ended_at if job.status.ended else job.created_at
    return format_age(now.wall_ms - parse_time(since or job.updated_at))


def _text(item: Item, job: Job, context: DrawContext) -> Text:
    """The latest event first, then the prompt."""
    latest = _latest(item, job, context)
    prompt = first_line(job.prompt)
    if not latest:
        return Text(prompt)
    return Text.assemble(latest, ("  ", ""), (prompt, "dim"))


def _latest(item: Item, job: Job, context: DrawContext) -> str:
    if item.attention is not None:
        return one_line(item.attention.why)
    if item.section == WAITS:
        sentences = [shorten_ids(sentence).removeprefix("It waits for ") for sentence in context.explain(job)]
        return _AT_TIME.sub("", " ".join(sentences))
    if job.status is RUNNING:
        last_event = context.last_event(job.job_id)
        return one_line(last_event.detail) if last_event is not None and last_event.event != STARTED else ""
    if job.status is COMPLETED:
        return "" if job.checked else "(unchecked)"
    return one_line(job.reason or "") if job.status.ended and job.reason != job.status else ""


def _widths(rows: list[dict[str, Text]], width: int) -> dict[str, int]:
    widths = {name: max((row[name].cell_len for row in rows), default=0) for name in COLUMNS[:-1]}
    widths = {name: size for name, size in widths.items() if size}
    for name in DISPENSABLE:
        if name in widths and _left(widths, width) < (TEXT_LEAST if name != "by" else TEXT_BESIDE_OWNER):
            del widths[name]
    if widths.get("state") and _left(widths, width) < TEXT_LEAST:
        widths["state"] = 1
    return widths


def _left(widths: dict[str, int], width: int) -> int:
    return width - 2 - sum(size + 2 for size in widths.values())


def _row(cells: dict[str, Text], widths: dict[str, int], depth: int) -> Text:
    line = Text("  " * depth)
    for name, size in widths.items():
        cell = cells[name]
        if name == "age":
            cell.align("right", size)
        else:
            cell.truncate(size, pad=True)
        line.append_text(cell)
        line.append("  ")
    return line.append_text(cells["text"])
