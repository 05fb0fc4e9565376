"""Two plots as SVG: work and its outcome by day, and cost by agent and day. Pure.

Sizes are attributes and colours are classes, because the content policy forbids inline styles. Each bar has a title,
and the page has the same figures as a table.
"""

from __future__ import annotations

from markupsafe import Markup

from mam.util.figures import money

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 560, 200, 46, 6, 12, 26
GAP_SHARE, WIDEST_BAR = 0.3, 34.0
LABELS_MOST = 7


def stacked_bars(
    days: Sequence[tuple[str, Sequence[tuple[str, str, float]]]], name: str, words: Callable[[float], str]
) -> Markup:
    """Each day has parts of class, title and value; `words` writes a value."""
    top = _nice_top(max((sum(part[2] for part in parts) for _, parts in days), default=0))
    slot = (WIDTH - LEFT - RIGHT) / max(1, len(days))
    bar = min(WIDEST_BAR, slot * (1 - GAP_SHARE))
    shapes = [_grid(top, words)]
    every = -(-len(days) // LABELS_MOST)
    for at, (day, parts) in enumerate(days):
        x = LEFT + at * slot + (slot - bar) / 2
        shapes.append(_bar(x, bar, day, parts, top, words))
        if at % every == 0:
            shapes.append(_label(x + bar / 2, HEIGHT - 8, day[5:].replace("-", "/"), "middle"))
    inner = Markup("").join(shapes)
    return Markup('<svg class="plot" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        WIDTH, HEIGHT, name, inner
    )


def _bar(
    x: float, width: float, day: str, parts: Sequence[tuple[str, str, float]], top: float, words: Callable[[float], str]
) -> Markup:
    shapes, y = [], float(HEIGHT - BOTTOM)
    for look, title, value in parts:
        tall = value / top * (HEIGHT - TOP - BOTTOM)
        if tall <= 0:
            continue
        y -= tall
        shapes.append(
            Markup(
                '<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"><title>{}</title></rect>'
            ).format(look, x, y, width, max(1.0, tall - 1), f"{day}: {title} {words(value)}")
        )
    return Markup("").join(shapes)


def _grid(top: float, words: Callable[[float], str]) -> Markup:
    lines = []
    for part in (0, 0.5, 1):
        y = HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)
        lines.append(Markup('<path class="grid" d="M{} {:.1f}H{}"/>').format(LEFT, y, WIDTH - RIGHT))
        lines.append(_label(LEFT - 8, y + 4, words(top * part), "end"))
    return Markup("").join(lines)


def _label(x: float, y: float, text: str, anchor: str) -> Markup:
    return Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(x, y, anchor, text)


def _nice_top(most: float) -> float:
    """The least of 1, 2, 5, 10, 20, … that is not below the highest bar."""
    if most <= 0:
        return 1
    size = 10.0**-6
    while True:
        for step in (1, 2, 5):
            if size * step >= most:
                return size * step
        size *= 10


def whole(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def dollars(value: float) -> str:
    return money(value)
