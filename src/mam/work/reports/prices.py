"""What tokens cost by the prices of the settings, where the agent tells no cost itself."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Json

FROM_PRICES = "prices"
"""The mark of such a cost in the record, beside one that the agent told, which has none."""
_MILLION = 1_000_000


def cost_of(tokens: dict[str, int], prices: Json) -> float | None:
    """In US dollars; None when the agent left out what it read or wrote, since the rest would be too little.

    Every reader counts `cached` beside `input` and not in it. `output` has the reasoning in it, where an agent that
    tells no cost (Codex) counts that.
    """
    if "input" not in tokens or "output" not in tokens:
        return None
    for_cached = prices["cached"] if "cached" in prices else prices["input"]
    dollars: float = (
        tokens["input"] * prices["input"] + tokens.get("cached", 0) * for_cached + tokens["output"] * prices["output"]
    )
    return round(dollars / _MILLION, 9)
