"""Following one job at the terminal: its output as it comes, and its outcome as the exit code."""

from __future__ import annotations

import time

from mam.cli.output import put_json, say
from mam.cli.show_output import output_directory, put_output
from mam.cli.text import one_line
from mam.errors import MamError
from mam.jobs.rules import ID_PREFIX_SHOWN
from mam.jobs.status import CANCELLED, COMPLETED, RUNNING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.jobs.record import Job
    from mam.registry import Registry

DETACHED, ENDED_IN_ERROR, WAS_CANCELLED = 130, 7, 8
SECOND_SECONDS = 2.0


def follow(registry: Registry, job: Job, *, as_json: bool) -> int:
    short = job.job_id[:ID_PREFIX_SHOWN]
    try:
        job = _until_ended(registry, job, quietly=as_json)
    except KeyboardInterrupt:
        return _detach(registry, job, short)
    if as_json:
        put_json(job.to_json())
    else:
        say(_outcome(job, short))
    return 0 if job.status is COMPLETED else WAS_CANCELLED if job.status is CANCELLED else ENDED_IN_ERROR


def _until_ended(registry: Registry, job: Job, *, quietly: bool) -> Job:
    """Attempt by attempt: one that is lost or retried is followed by the next."""
    for seen in registry.follow([job.job_id]):
        if seen.status is RUNNING and not quietly:
            put_output(_output(registry, seen))
    return registry.get(job.job_id)


def _output(registry: Registry, job: Job) -> Iterator[bytes]:
    from mam.work.output import follow as follow_output

    def ended() -> bool:
        now = registry.store.get(job.job_id)
        return now.status is not RUNNING or now.attempt != job.attempt

    return follow_output(output_directory(registry, job, job.attempt), ended)


def _detach(registry: Registry, job: Job, short: str) -> int:
    say(f"detached; {short} goes on. Ctrl-C again within {SECOND_SECONDS:g} s cancels it")
    try:
        time.sleep(SECOND_SECONDS)
    except KeyboardInterrupt:
        try:
            registry.cancel(job.job_id, reason="Ctrl-C")
        except MamError as error:
            say(str(error))
        say(f"cancelled {short}")
        return WAS_CANCELLED
    say(f"come back with `mam output {short} --follow`, wait with `mam wait {short}`, stop with `mam cancel {short}`")
    return DETACHED


def _outcome(job: Job, short: str) -> str:
    took = (job.run or {}).get("wall_seconds")
    after = f" after {took:.1f} s" if isinstance(took, int | float) else ""
    why = f": {one_line(job.reason)}" if job.reason and job.reason != job.status else ""
    if job.status is COMPLETED:
        return f"{short} completed{after}{'' if job.checked else ' (unchecked)'}"
    return f"{short} ended in {job.status}{after}{why}; `mam logs {short}` tells how"
