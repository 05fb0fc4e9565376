"""A pause: nobody claims jobs of an agent, of a label, or any at all, until it is lifted or its time is over."""

from __future__ import annotations

from mam.errors import BadInput
from mam.util.clock import Moment, iso_milli, parse_time
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mam.jobs.record import Job, Json


class Pause(Frozen):
    """Of all jobs that have this agent and this label; None stands for any. One of each kind is kept."""

    agent: str | None = None
    label: str | None = None
    until: str | None = None
    """None: until somebody resumes."""
    reason: str | None = None
    made_at: str = ""
    probe: str | None = None
    """Of a usage limit: the one job that it lets through, to see whether the limit is over."""

    def covers(self, agent: str, label: str) -> bool:
        return self.agent in (None, agent) and self.label in (None, label)

    def left_ms(self, moment: Moment) -> int | None:
        """How long it still holds; None when only a person ends it."""
        return None if self.until is None else parse_time(self.until) - moment.wall_ms

    def is_active(self, moment: Moment) -> bool:
        left = self.left_ms(moment)
        return left is None or left > 0

    @property
    def scope(self) -> str:
        """For sentences: `agent codex`, `label tmux:a`, `everything`."""
        named = [f"agent {self.agent}"] if self.agent is not None else []
        named += [f"label {self.label}"] if self.label is not None else []
        return " and ".join(named) or "everything"


def parse_pause(fields: Json) -> Pause:
    """A pause as a store keeps it."""
    return Pause(**{name: fields[name] for name in Pause.field_names if name in fields})


def draft_pause(agent: str | None, label: str | None, until_ms: int | None, reason: str | None, now: Moment) -> Pause:
    if until_ms is not None and until_ms <= now.wall_ms:
        raise BadInput(why="the end of that pause has passed already")
    return Pause(
        agent=agent,
        label=label,
        until=None if until_ms is None else iso_milli(until_ms),
        reason=reason,
        made_at=now.second,
    )


def paused_agents(
    pauses: Iterable[Pause], label: str, moment: Moment, wanted: str | None = None
) -> frozenset[str] | None:
    """The agents whose jobs a claim for this label passes over; None when it may take nothing at all. A claim for one
    job that is `wanted` is not held back by a pause that lets this job through."""
    held = [
        one.agent for one in pauses
        if one.label in (None, label) and one.is_active(moment) and (wanted is None or one.probe != wanted)
    ]  # fmt: skip
    return None if None in held else frozenset(agent for agent in held if agent is not None)


def probe_jobs(pauses: Iterable[Pause], label: str, moment: Moment) -> list[str]:
    """Jobs that a pause lets through, before any other is taken."""
    return [
        one.probe for one in pauses if one.probe is not None and one.label in (None, label) and one.is_active(moment)
    ]


def blocking_pause(pauses: Iterable[Pause], job: Job, moment: Moment) -> Pause | None:
    """The pause that keeps this job from being claimed, if any; one without an end before one that ends."""
    found = [
        one for one in pauses
        if one.covers(job.agent, job.agent_session) and one.is_active(moment) and one.probe != job.job_id
    ]  # fmt: skip
    return min(found, key=lambda one: (one.until is not None, one.until or ""), default=None)


def seconds_until_lifted(pauses: Iterable[Pause], moment: Moment) -> float | None:
    times = [left for one in pauses if one.is_active(moment) and (left := one.left_ms(moment)) is not None]
    return min(times) / 1000 if times else None
