"""Statistics: two plots that are read at a glance, and the figures behind each as a table."""

from __future__ import annotations

from markupsafe import Markup

from mam.access.grant import READ
from mam.serve.pages.moments import words_of
from mam.serve.pages.plots import dollars, stacked_bars, whole
from mam.util.clock import iso_second
from mam.util.figures import count, money
from mam.util.frozen import Frozen
from mam.util.safe_text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    import apsw

    from mam.access.registry import AuthorizedRegistry
    from mam.stats.figures import Figures

PERIODS = {"7": 7, "30": 30, "90": 90}
DAY_MS = 86_400_000
SERIES = 4
"""Agents with a colour of their own; the others are one."""
_OUTCOMES = (("b-ok", "completed"), ("b-bad", "error"), ("b-idle", "cancelled"))


class FigureRow(Frozen):
    name: str
    cells: tuple[str, ...]


class Statistics(Frozen):
    days: int
    tiles: tuple[tuple[str, str], ...]
    work: Markup
    cost: Markup
    cost_legend: tuple[tuple[str, str], ...]
    by_day: tuple[FigureRow, ...]
    by_agent: tuple[FigureRow, ...]
    by_label: tuple[FigureRow, ...]
    is_empty: bool


HEADINGS = ("ended", "completed", "error", "cancelled", "success", "median wait", "median run", "tokens", "cost")


def statistics_page(registry: AuthorizedRegistry, days: int) -> Statistics:
    from mam.stats import figures
    from mam.stats.cache import StatsCache

    registry.viewer.need(READ, "read statistics")
    now_ms = registry.registry.store.clock.now().wall_ms
    first_ms = (now_ms // DAY_MS - days + 1) * DAY_MS
    with StatsCache(registry.registry.store) as cache:
        ended = figures.EndedJobs(cache.database, first_ms // 1000)
        total, by_day = ended.total(), ended.grouped("day")
        by_agent, by_label = ended.grouped("agent"), ended.grouped("label")
        costs = _costs(cache.database, first_ms // 1000)
    names = figures.days_between(iso_second(first_ms)[:10], iso_second(now_ms)[:10])
    agents = _ranked(by_agent)
    return Statistics(
        days=days, tiles=_tiles(total), work=_work(names, by_day), cost=_cost(names, agents, costs),
        cost_legend=tuple((f"s{at}", name) for at, name in enumerate(agents)),
        by_day=tuple(_row(one) for one in reversed(by_day)), by_agent=tuple(map(_row, by_agent)),
        by_label=tuple(map(_row, by_label[:50])), is_empty=not total.ended,
    )  # fmt: skip


def _costs(database: apsw.Connection, since: int) -> dict[tuple[str, str], float]:
    """Dollars by day and agent."""
    words = "SELECT date(ended, 'unixepoch'), agent, sum(cost) FROM job WHERE ended >= ? AND cost > 0 GROUP BY 1, 2"
    return {(str(day), str(agent)): float(cost) for day, agent, cost in database.execute(words, (since,))}


def _ranked(by_agent: Sequence[Figures]) -> list[str]:
    """The agents that cost most, and a name for the rest."""
    spent = sorted((one for one in by_agent if one.cost > 0), key=lambda one: -one.cost)
    names = [one_line(one.name) for one in spent]
    return names if len(names) <= SERIES + 1 else [*names[:SERIES], "others"]


def _work(days: Sequence[str], by_day: Sequence[Figures]) -> Markup:
    known = {one.name: one for one in by_day}
    bars = [
        (day, [(look, name, float(getattr(known[day], name))) for look, name in _OUTCOMES] if day in known else [])
        for day in days
    ]
    return stacked_bars(bars, "Jobs that ended, by day and outcome", whole)


def _cost(days: Sequence[str], agents: Sequence[str], costs: dict[tuple[str, str], float]) -> Markup:
    bars = []
    for day in days:
        parts: dict[str, float] = {}
        for (on, agent), cost in costs.items():
            if on == day:
                name = one_line(agent)
                shown = name if name in agents else "others"
                parts[shown] = parts.get(shown, 0.0) + cost
        bars.append((day, [(f"s{at}", name, parts[name]) for at, name in enumerate(agents) if name in parts]))
    return stacked_bars(bars, "Cost in US dollars, by day and agent", dollars)


def _tiles(total: Figures) -> tuple[tuple[str, str], ...]:
    success = "–" if total.success is None else f"{total.success:.0%}"
    return (
        (whole(total.ended), "jobs ended"), (success, "of those tried completed"),
        ("–" if total.run_median is None else words_of(int(total.run_median)), "median run"),
        (count(total.tokens), "tokens"), (money(total.cost), "cost"),
    )  # fmt: skip


def _row(one: Figures) -> FigureRow:
    def seconds(value: float | None) -> str:
        return "–" if value is None else words_of(int(value))

    success = "–" if one.success is None else f"{one.success:.0%}"
    cells = (whole(one.ended), whole(one.completed), whole(one.error), whole(one.cancelled), success,
             seconds(one.wait_median), seconds(one.run_median), count(one.tokens), money(one.cost))  # fmt: skip
    return FigureRow(name=one_line(one.name), cells=cells)
