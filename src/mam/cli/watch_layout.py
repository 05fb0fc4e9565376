"""Which lines `mam watch` shows and in what order: what needs you first. Pure; how they look is drawn elsewhere."""

from __future__ import annotations

from mam.frozen import Frozen
from mam.jobs.status import RUNNING, WAITING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mam.cli.watch_model import Model, Need
    from mam.clock import Moment
    from mam.jobs.record import Job

NEEDS, RUNS, FAILED, WAITS, PENDS, DONE = "needs you", "running", "failed", "waiting", "pending", "done"
TITLE, ROW, LABEL, MORE, GAP = "title", "row", "label", "more", "gap"

URGENCY = ("asks", "yours", "stalled", "quiet", "failed")
LEAST_ROWS, LEAST_PART = 2, 5
"""What each section keeps when those above it could fill the screen: so many lines, or that part of it."""
NEXT_SHOWN = 10


class Item(Frozen):
    """One line."""

    kind: str
    section: str
    key: str = ""
    """What stays selected while lines move: a job, a label, or a section's rest."""
    job: Job | None = None
    need: Need | None = None
    label: str = ""
    count: int = 0
    agents: tuple[str, ...] = ()
    depth: int = 0

    @property
    def selectable(self) -> bool:
        return self.kind in (ROW, LABEL, MORE)


def sections(model: Model, now: Moment, unfolded: set[str]) -> list[tuple[str, list[Item]]]:
    """Every section that has something, with all of its lines."""
    open_jobs = list(model.open.values())
    asking = [(job, need) for job in [*open_jobs, *reversed(model.failed.values())] if (need := model.need(job, now))]
    asking.sort(key=lambda pair: URGENCY.index(pair[1].word))
    seen = {job.job_id for job, _ in asking}
    runs = sorted(_of(open_jobs, RUNNING, seen), key=lambda job: (job.claimed_at or "", job.number))
    waits = sorted(_of(open_jobs, WAITING, seen), key=lambda job: (job.due_at or "~", job.number))
    found = [
        (NEEDS, [_row(NEEDS, job, need) for job, need in asking]),
        (RUNS, [_row(RUNS, job) for job in runs]),
        (FAILED, [_row(FAILED, job) for job in reversed(model.failed.values()) if job.job_id not in seen]),
        (WAITS, [_row(WAITS, job) for job in waits]),
        (PENDS, _labels(model, unfolded)),
        (DONE, [_row(DONE, job) for job in reversed(model.done.values())]),
    ]
    return [(name, items) for name, items in found if items]


def fitted(found: Sequence[tuple[str, list[Item]]], height: int, unfolded: set[str]) -> list[Item]:
    """All lines, titles and gaps among them. What does not fit is folded, section by section, from below."""
    rooms = _rooms([len(items) for _, items in found], height)
    gaps = sum(rooms) + 2 * len(found) - 1 <= height
    lines: list[Item] = []
    for (name, items), room in zip(found, rooms, strict=True):
        if lines and gaps:
            lines.append(Item(kind=GAP, section=name))
        count = sum(item.count or 1 for item in items if not item.depth)
        lines.append(Item(kind=TITLE, section=name, count=count))
        if len(items) <= room or name in unfolded:
            lines += items
            continue
        lines += items[: room - 1]
        lines.append(Item(kind=MORE, section=name, key=name, count=len(items) - room + 1))
    return lines


def _rooms(wanted: Sequence[int], height: int) -> list[int]:
    """How many lines each section gets: first a few for everyone, then what is left from the top."""
    left = height - len(wanted)
    least = max(LEAST_ROWS, min(height // LEAST_PART, left // max(1, len(wanted))))
    rooms = [min(count, least) for count in wanted]
    left -= sum(rooms)
    for at, count in enumerate(wanted):
        more = max(0, min(count - rooms[at], left))
        rooms[at] += more
        left -= more
    return rooms


def _of(jobs: list[Job], status: str, seen: set[str]) -> list[Job]:
    return [job for job in jobs if job.status == status and job.job_id not in seen]


def _row(section: str, job: Job, need: Need | None = None) -> Item:
    return Item(kind=ROW, section=section, key=job.job_id, job=job, need=need)


def _labels(model: Model, unfolded: set[str]) -> list[Item]:
    counts: dict[str, int] = {}
    agents: dict[str, set[str]] = {}
    for queued in model.queued.values():
        counts[queued.label] = counts.get(queued.label, 0) + 1
        agents.setdefault(queued.label, set()).add(queued.agent)
    items = []
    for label, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
        key = f"label {label}"
        names = tuple(sorted(agents[label]))
        items.append(Item(kind=LABEL, section=PENDS, key=key, label=label, count=count, agents=names))
        if key in unfolded:
            items += [Item(kind=ROW, section=PENDS, key=job_id, depth=1) for job_id in model.next_of(label, NEXT_SHOWN)]
    return items
