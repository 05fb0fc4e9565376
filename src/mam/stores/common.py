"""What several stores need and none owns."""

from __future__ import annotations

from mam.jobs.sweep import end_of_wait

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.change import Line
    from mam.jobs.record import Job, Json
    from mam.stores.port import Query


def changed_fields(before: Job | None, after: Json) -> Json:
    """Only what changed goes into the journal: a prompt of a megabyte is logged once, not at every step."""
    if before is None:
        return after
    old = before.to_json()
    return {name: value for name, value in after.items() if name not in old or old[name] != value}


def event_of(line: Line) -> Line | None:
    """What the event log keeps of a history line: an event's payload, or the marker of numbers without one."""
    if line["event"] == "published":
        payload: Line = line["payload"]
        return payload
    if line["event"] in ("reserved", "imported"):
        return {"marker": line["event"], "seq": line["seq"], "upto": line["upto"]}
    return None


def due_ms(job: Job) -> int:
    """When the job's lease or wait ends, on the wall clock; only for sorting what is due already."""
    end = end_of_wait(job)
    return 0 if end is None else end.wall_ms


def matches(query: Query, job: Job) -> bool:
    return (
        (query.statuses is None or job.status in query.statuses)
        and (query.label is None or job.agent_session == query.label)
        and (query.since is None or job.created_at >= query.since)
    )
