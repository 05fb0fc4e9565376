"""The journal entries of an archived job, summarised as one entry.

The summary has every line of history and says from which entry each line comes (`summarised`), so that a consumer that
reads it knows which lines it has seen. Of the fields, it keeps those that sums are made of; the archive has the record.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mam.jobs.change import AuditRecord
    from mam.jobs.record import Json

SUMMARISED = "summarised"
_FIRST_FIELDS = (
    "agent_session", "agent", "status", "attempt", "losses", "retries", "created_at", "claimed_at", "ended_at",
)  # fmt: skip


def summarise(entries: Sequence[tuple[int, Json | None, Sequence[AuditRecord]]]) -> tuple[Json, list[AuditRecord]]:
    """The fields and the lines of the summary of entries (number, fields, lines), in order."""
    first = entries[0][1] or {}
    fields = {name: first[name] for name in _FIRST_FIELDS if first.get(name)}
    costs = [cost for _, set_fields, lines in entries if (cost := spent(set_fields, lines)) is not None]
    if costs:
        tokens, dollars = sum(cost[0] for cost in costs), sum(cost[1] for cost in costs)
        fields["run"] = {"agent": {"tokens": {"all": tokens}, "cost_usd": dollars}}
    origins = [origin for number, set_fields, lines in entries for origin in line_origins(number, set_fields, lines)]
    fields[SUMMARISED] = [list(origin) for origin in origins]
    return fields, [line for _, _, lines in entries for line in lines]


def line_origins(number: int, fields: Json | None, lines: Sequence[AuditRecord]) -> Iterator[tuple[int, int]]:
    """For each line of an entry: the number of the entry in which it was written, and its index there."""
    known = (fields or {}).get(SUMMARISED)
    if known is None:
        yield from ((number, index) for index in range(len(lines)))
    else:
        yield from ((origin[0], origin[1]) for origin in known)


def spent(fields: Json | None, lines: Sequence[AuditRecord]) -> tuple[int, float] | None:
    """Tokens and cost of the attempt that ends with an entry. A run is stored several times, but ends once."""
    if not any(line["event"] == "status_changed" and line.get("from") == "running" for line in lines):
        return None
    run = (fields or {}).get("run")
    agent = run.get("agent") if isinstance(run, dict) else None
    if not isinstance(agent, dict):
        return None
    tokens, cost = agent.get("tokens"), agent.get("cost_usd")
    counted = [number for number in tokens.values() if type(number) is int] if isinstance(tokens, dict) else []
    return sum(counted), float(cost) if isinstance(cost, (int, float)) else 0.0
