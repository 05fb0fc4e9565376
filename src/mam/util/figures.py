"""Short words for durations, tokens and money."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def duration(seconds: float) -> str:
    """`0.4 s`, `12 s`, `7 min`, `2 h 5 min`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes = round(whole / 60)
    if minutes < 60:
        return f"{whole // 60} min {whole % 60} s" if whole < 600 and whole % 60 else f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if rest else f"{hours} h"


def count(number: int) -> str:
    """`950`, `41k`, `1.2M`."""
    if number < 10_000:
        return f"{number:,}"
    return f"{number / 1000:.0f}k" if number < 999_500 else f"{number / 1_000_000:.1f}M"


def money(dollars: float) -> str:
    """Two digits, or as many as a small sum needs."""
    return (
        f"${dollars:,.2f}" if dollars >= 0.1 or dollars == 0 else f"${dollars:.2g}" if dollars >= 0.0001 else "<$0.0001"
    )


def cost_words(figures: Mapping[str, object]) -> list[str]:
    """`41k tokens` and `$0.31`, as far as they are known."""
    tokens = [figure for name in ("input", "cached", "output") if type(figure := figures.get(name)) is int]
    dollars = figures.get("usd")
    words = [f"{count(sum(tokens))} tokens"] if tokens else []
    return words + ([money(dollars)] if isinstance(dollars, int | float) else [])
