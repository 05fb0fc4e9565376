"""`list`: jobs, newest first."""

from __future__ import annotations

from mam.errors import BadInput
from mam.mcp.tool import Call, Tool, tool_result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.jobs.record import Job
    from mam.mcp.messages import Json

STATUSES = ("pending", "waiting", "running", "completed", "error", "cancelled")
LIMIT, MOST = 20, 100


def run(call: Call) -> Json:
    from mam.mcp.job_report import row

    arguments = call.arguments
    limit = arguments.get("limit", LIMIT)
    rows: list[Job] = []
    more = False
    for job in _matching(call, _before(arguments.get("cursor"))):
        if len(rows) == limit:
            more = True
            break
        rows.append(job)
    found: Json = {"jobs": [row(job) for job in rows]}
    return tool_result({**found, "cursor": str(rows[-1].number)} if more else found)


def _matching(call: Call, before: int | None) -> Iterator[Job]:
    from mam.jobs.status import Status
    from mam.registry.listing import JobFilter
    from mam.stores.port import Query

    statuses = call.arguments.get("status")
    query = Query(
        statuses=frozenset(map(Status, statuses)) if statuses else None, label=call.arguments.get("label"),
        asking=bool(call.arguments.get("asking")), below=before,
    )  # fmt: skip
    return call.service.backend.select(JobFilter(query=query, agent=call.arguments.get("agent")))


def _before(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    if not cursor.isascii() or not cursor.isdigit() or len(cursor) > 18:
        raise BadInput(why="this is not a cursor of list; repeat the call without one")
    return int(cursor)


TOOL = Tool(
    name="list",
    description="List jobs, newest first.",
    properties={
        "status": {"type": "array", "items": {"type": "string", "enum": list(STATUSES)}},
        "label": {"type": "string"},
        "agent": {"type": "string"},
        "asking": {"type": "boolean", "description": "Only jobs with an open question"},
        "limit": {"type": "integer", "minimum": 1, "maximum": MOST},
        "cursor": {"type": "string"},
    },
    run=run,
    repeats=True,
)
