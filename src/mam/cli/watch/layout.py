"""The lines of `mam watch` and their order: jobs that need you first. Pure functions; drawing.py styles the lines."""

from __future__ import annotations

from mam.jobs.status import RUNNING, WAITING
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mam.cli.watch.model import Attention, Model
    from mam.jobs.record import Job
    from mam.util.clock import Moment

NEEDS, RUNS, IN_ERROR, WAITS, PENDS, DONE = "needs you", "running", "error", "waiting", "pending", "done"
TITLE, ROW, LABEL, MORE, GAP = "title", "row", "label", "more", "gap"

URGENCY = ("asks", "yours", "quiet", "error")
LEAST_ROWS, LEAST_PART = 2, 5
"""The least lines of a section, and its least share of the screen, when others could fill the screen."""
SMALL_SCREEN = 18
NEXT_SHOWN = 10


class Item(Frozen):
    """One line."""

    kind: str
    section: str
    key: str = ""
    """Identifies the selection while lines move: a job, a label, or the rest of a section."""
    job: Job | None = None
    attention: Attention | None = None
    label: str = ""
    count: int = 0
    agents: tuple[str, ...] = ()
    depth: int = 0

    @property
    def selectable(self) -> bool:
        return self.kind in (ROW, LABEL, MORE)


class Section(Frozen):
    name: str
    count: int
    """The number of jobs."""
    lines: int
    """The number of lines without a limit."""
    items: list[Item]
    """As many as the screen can show."""


def sections(model: Model, now: Moment, unfolded: set[str], room: int) -> list[Section]:
    """Every section that is not empty."""
    open_jobs = list(model.open.values())
    asking = [
        (job, attention)
        for job in [*open_jobs, *reversed(model.failed.values())]
        if (attention := model.attention(job, now))
    ]
    asking.sort(key=lambda pair: URGENCY.index(pair[1].word))
    needs = {job.job_id: attention for job, attention in asking}
    runs = [job for job in open_jobs if job.status is RUNNING and job.job_id not in needs]
    waits = [job for job in open_jobs if job.status is WAITING]
    found = [
        (NEEDS, [job for job, _ in asking]),
        (RUNS, sorted(runs, key=lambda job: (job.claimed_at or "", job.number))),
        (IN_ERROR, [job for job in reversed(model.failed.values()) if job.job_id not in needs]),
        (WAITS, sorted(waits, key=lambda job: (job.due_at or "~", job.number))),
        (DONE, list(reversed(model.done.values()))),
    ]
    made = [_section(name, jobs, needs, None if name in unfolded else room) for name, jobs in found]
    labels = _labels(model, unfolded)
    made.insert(-1, Section(name=PENDS, count=len(model.queued), lines=len(labels), items=labels))
    return [section for section in made if section.items]


def fit_sections(found: Sequence[Section], height: int, unfolded: set[str]) -> list[Item]:
    """All lines with titles and gaps. A section that does not fit is folded."""
    rooms = _allocate_lines([section.lines for section in found], height)
    gaps = sum(rooms) + 2 * len(found) - 1 <= height
    lines: list[Item] = []
    for section, room in zip(found, rooms, strict=True):
        if lines and gaps:
            lines.append(Item(kind=GAP, section=section.name))
        lines.append(Item(kind=TITLE, section=section.name, count=section.count))
        if section.lines <= room or section.name in unfolded or any(item.depth for item in section.items):
            lines += section.items
            continue
        lines += section.items[: room - 1]
        lines.append(Item(kind=MORE, section=section.name, key=section.name, count=section.lines - room + 1))
    return lines


def _section(name: str, jobs: list[Job], needs: dict[str, Attention], most: int | None) -> Section:
    """Creates lines only for jobs that fit on the screen; thousands may wait."""
    items = [
        Item(kind=ROW, section=name, key=job.job_id, job=job, attention=needs.get(job.job_id)) for job in jobs[:most]
    ]
    return Section(name=name, count=len(jobs), lines=len(jobs), items=items)


def _allocate_lines(wanted: Sequence[int], height: int) -> list[int]:
    """The lines of each section: first the least number for each, then the rest from the top."""
    left = height - len(wanted)
    least = max(LEAST_ROWS, min(height // LEAST_PART, left // max(1, len(wanted))))
    rooms = [min(count, least) for count in wanted]
    if wanted and height < SMALL_SCREEN:
        rooms[0] = min(wanted[0], height // 2)  # scrolling shows the others
    left -= sum(rooms)
    for at, count in enumerate(wanted):
        more = max(0, min(count - rooms[at], left))
        rooms[at] += more
        left -= more
    return rooms


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
