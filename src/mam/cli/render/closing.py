"""The first and the last line of `mam run`: where the job runs; how it ended, what was checked, what it cost."""

from __future__ import annotations

import os

from mam.cli.render.text import one_line
from mam.jobs.input_rules import ID_PREFIX_SHOWN
from mam.jobs.overview import cost_of, seconds_of
from mam.jobs.status import COMPLETED, in_words
from mam.util.figures import cost_words, duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.render.prose import StyledLine
    from mam.jobs.record import Job

_WORKSPACES = {"worktree": "a worktree of its own", "fresh": "a fresh directory"}


def opening_line(job: Job, short: str) -> StyledLine:
    place = os.path.basename(job.workdir or "")
    facts = [job.agent, *([place] if place else [])]
    if job.continues:
        facts.append(f"continues {job.continues[:ID_PREFIX_SHOWN]}")
    elif job.workspace in _WORKSPACES:
        facts.append(_WORKSPACES[job.workspace])
    return [(short, "bold"), (f"  {' · '.join(map(one_line, facts))}", "")]


def closing_line(job: Job, short: str) -> str:
    took = seconds_of(job)
    after = "" if took is None else f" after {duration(took)}"
    if job.status is COMPLETED:
        facts = [f"completed{after}{'' if job.checked else ' (unchecked)'}", *_checks(job), *_cost(job)]
        return f"{short} {' · '.join(facts)}"
    # Some reasons are sentences with a full stop.
    why = f": {one_line(job.reason).removesuffix('.')}" if job.reason and job.reason != job.status else ""
    facts = [f"{in_words(job.status)}{after}{why}", *_cost(job)]
    return f"{short} {' · '.join(facts)}; `mam show {short}` shows more"


def _checks(job: Job) -> list[str]:
    checks = job.checks or {}
    artifacts, script = checks.get("artifacts") or [], checks.get("script")
    found = [f"{len(artifacts)} artifacts found"] if len(artifacts) > 2 else [
        f"{one_line(str(artifact.get('path')))} found" for artifact in artifacts
    ]  # fmt: skip
    return found + (["validation passed"] if isinstance(script, dict) else [])


def _cost(job: Job) -> list[str]:
    cost = cost_of(job) or {}
    return cost_words({**cost.get("tokens", {}), "usd": cost.get("usd")})
