"""A pause stops claims for an agent, for a label, or for all jobs, until it is lifted or ends."""

from __future__ import annotations

from mam.errors import BadInput
from mam.jobs import input_rules
from mam.util.clock import Moment, iso_milli, parse_time
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mam.jobs.record import Job, Json


class Pause(Frozen):
    """Applies to the jobs with this agent and this label; None matches any. A store keeps one pause for each pair."""

    agent: str | None = None
    label: str | None = None
    until: str | None = None
    """None: until `mam resume`."""
    reason: str | None = None
    made_at: str = ""
    probe: str | None = None
    """For a usage limit: the one job that can be claimed, to find out whether the limit is over."""

    def covers(self, agent: str, label: str) -> bool:
        return self.agent in (None, agent) and self.label in (None, label)

    def left_ms(self, moment: Moment) -> int | None:
        """Milliseconds until it ends; None when only `mam resume` ends it."""
        return None if self.until is None else parse_time(self.until) - moment.wall_ms

    def is_active(self, moment: Moment) -> bool:
        left = self.left_ms(moment)
        return left is None or left > 0

    @property
    def scope(self) -> str:
        """For messages: `agent codex`, `label tmux:a`, `everything`."""
        named = [f"agent {self.agent}"] if self.agent is not None else []
        named += [f"label {self.label}"] if self.label is not None else []
        return " and ".join(named) or "everything"


def parse_pause(fields: Json) -> Pause:
    """A pause from its stored fields."""
    return Pause(**{name: fields[name] for name in Pause.field_names if name in fields})


def draft_pause(agent: str | None, label: str | None, until_ms: int | None, reason: str | None, now: Moment) -> Pause:
    if until_ms is not None and until_ms <= now.wall_ms:
        raise BadInput(why="the end of that pause has passed already")
    for what, name in (("agent", agent), ("label", label)):
        if name is not None:
            input_rules.check_name(what, name)
    if reason is not None:
        input_rules.check_text("reason", reason, input_rules.REASON_LIMIT)
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
    """The agents whose jobs a claim for this label must skip; None when it can take no job at all. A pause whose probe
    is the `wanted` job does not block the claim of that job."""
    held = [
        one.agent for one in pauses
        if one.label in (None, label) and one.is_active(moment) and (wanted is None or one.probe != wanted)
    ]  # fmt: skip
    return None if None in held else frozenset(agent for agent in held if agent is not None)


def probe_jobs(pauses: Iterable[Pause], label: str, moment: Moment) -> list[str]:
    """The probe jobs of active pauses; they are claimed before any other job."""
    return [
        one.probe for one in pauses if one.probe is not None and one.label in (None, label) and one.is_active(moment)
    ]


def blocking_pause(pauses: Iterable[Pause], job: Job, moment: Moment) -> Pause | None:
    """The pause that blocks this job, if any; one without an end is preferred to one that ends."""
    found = [
        one for one in pauses
        if one.covers(job.agent, job.agent_session) and one.is_active(moment) and one.probe != job.job_id
    ]  # fmt: skip
    return min(found, key=lambda one: (one.until is not None, one.until or ""), default=None)


def seconds_until_lifted(pauses: Iterable[Pause], moment: Moment) -> float | None:
    times = [left for one in pauses if one.is_active(moment) and (left := one.left_ms(moment)) is not None]
    return min(times) / 1000 if times else None
