"""`mam stats` on a terminal: a summary, a bar for each day, and a table for each group."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mam.cli.render.text import one_line
from mam.stats.figures import Figures, days_between

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

DAYS_SHOWN = 14
ROWS_SHOWN = 15
NAME_MOST = 22
PARTS = (("completed", "green"), ("error", "red"), ("cancelled", "bright_black"))
_EIGHTHS = " ▏▎▍▌▋▊▉"


def show(
    total: Figures, groups: dict[str, list[Figures]], registered: int, open_now: dict[str, int], hours: float | None
) -> None:
    console = Console(highlight=False)
    console.print(_summary(total, registered, open_now, hours))
    for kind, found in groups.items():
        if not found:
            continue
        console.print()
        if kind == "day":
            _bars(console, found[-DAYS_SHOWN:])
        else:
            console.print(_table(kind, found))


def _summary(total: Figures, registered: int, open_now: dict[str, int], hours: float | None) -> Text:
    if not total.ended:
        still = ", ".join(f"{number:,} {status}" for status, number in open_now.items())
        return Text(f"no job has ended in this period; {still or 'no open jobs'}")
    words = [f"{total.ended:,} ended", f"{registered:,} registered"]
    if hours is not None and hours >= 1:
        words.append(f"{total.ended / hours:,.1f} an hour")
    if total.success is not None:
        words.append(f"{percent(total.success)} succeeded")
    if total.losses:
        words.append(f"{total.losses:,} lost")
    if total.cost:
        words.append(f"${total.cost:,.2f}")
    if open_now:
        words.append(", ".join(f"{number:,} {status}" for status, number in sorted(open_now.items())))
    return Text(" · ").join(Text(word, style="bold" if place == 0 else "") for place, word in enumerate(words))


def _bars(console: Console, days: Sequence[Figures]) -> None:
    """One bar for each day, coloured by outcome; a day without jobs has an empty line."""
    known = {one.name: one for one in days}
    names = days_between(days[0].name, days[-1].name)[-DAYS_SHOWN:]
    most = max(one.ended for one in days)
    room = max(10, console.width - len("2026-01-01") - 2 - 22)
    console.print(Text("DAY", style="bold"))
    for name in names:
        one = known.get(name)
        if one is None:
            console.print(Text(name, style="dim"))
            continue
        bar = Text(f"{name}  ")
        for part, colour in PARTS:
            bar.append(_bar(getattr(one, part) * room / most), style=colour)
        bar.append(f" {one.completed:,}")
        for number, word, colour in ((one.error, "error", "red"), (one.cancelled, "cancelled", "bright_black")):
            if number:
                bar.append(f" + {number:,} {word}", style=colour)
        bar.truncate(console.width, overflow="ellipsis")
        console.print(bar)


def _bar(length: float) -> str:
    whole, eighths = int(length), int((length % 1) * 8)
    text = "█" * whole + _EIGHTHS[eighths].strip()
    return text or ("▏" if length > 0 else "")


def _table(kind: str, found: list[Figures]) -> Table:
    with_cost, with_losses = any(one.cost for one in found), any(one.losses for one in found)
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column(kind.upper(), max_width=NAME_MOST, no_wrap=True, overflow="ellipsis")
    names = ["ENDED", "OK", *(["LOST"] if with_losses else []), "WAIT", "P95", "RUN", "P95"]
    for name in [*names, *(["COST"] if with_cost else [])]:
        table.add_column(name, justify="right", no_wrap=True)
    for one in found[:ROWS_SHOWN]:
        table.add_row(
            Text(one_line(one.name)),
            f"{one.ended:,}",
            _success(one),
            *([f"{one.losses:,}" if one.losses else "·"] if with_losses else []),
            *(span(seconds) for seconds in (one.wait_median, one.wait_p95, one.run_median, one.run_p95)),
            *([f"${one.cost:,.2f}"] if with_cost else []),
        )
    if len(found) > ROWS_SHOWN:
        table.add_row(Text(f"… and {len(found) - ROWS_SHOWN:,} more", style="dim"))
    return table


def _success(one: Figures) -> Text:
    if one.success is None:
        return Text("·", style="dim")
    return Text(
        percent(one.success), style="green" if one.success >= 0.95 else "yellow" if one.success >= 0.5 else "red"
    )


def percent(share: float) -> str:
    """100 % only for a share of exactly 1."""
    return "100 %" if share == 1 else f"{min(99, round(share * 100))} %"


def span(seconds: float | None) -> str:
    """At most two units: 45s, 3m 20s, 2h 5m, 1d 4h."""
    if seconds is None:
        return "·"
    whole = round(seconds)
    for unit, size, lower, lower_size in (("d", 86400, "h", 3600), ("h", 3600, "m", 60), ("m", 60, "s", 1)):
        if whole >= size:
            rest = whole % size // lower_size
            return f"{whole // size}{unit} {rest}{lower}" if rest else f"{whole // size}{unit}"
    return f"{whole}s"
