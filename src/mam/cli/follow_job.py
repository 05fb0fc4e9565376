"""Following one job at the terminal: its output as it comes, and its outcome as the exit code."""

from __future__ import annotations

import time
from threading import Thread

from mam.cli.render.streams import print_json, say
from mam.cli.render.text import one_line
from mam.cli.verbs.output import output_log, print_output
from mam.errors import MamError
from mam.jobs.input_rules import ID_PREFIX_SHOWN
from mam.jobs.status import CANCELLED, COMPLETED, PENDING, RUNNING, in_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from subprocess import Popen

    from mam.jobs.record import Job
    from mam.registry import Registry

DETACHED, ENDED_IN_ERROR, WAS_CANCELLED, UNREACHABLE = 130, 7, 8, 9
WORKERS = 3
"""How many are started, one after another, before it is given up."""
SECOND_SECONDS = 2.0
LOOK_SECONDS = 0.1
"""A person is looking: the prompt comes back this soon after the end."""


def follow(registry: Registry, job: Job, start: Callable[[], Popen[bytes]], *, as_json: bool) -> int:
    """`start` gives the job a worker of its own."""
    short = job.job_id[:ID_PREFIX_SHOWN]
    minder = _Minder(start, lambda: registry.get(job.job_id).status.ended)
    try:
        if not job.status.ended:
            minder.start()
        job = _until_ended(registry, job, quietly=as_json)
    except KeyboardInterrupt:
        if minder.gave_up:
            say(f"no worker stays alive for {short}; `mam worker --job {short}` starts one that says why")
            return UNREACHABLE
        return _detach(registry, job, short)
    if as_json:
        print_json(job.to_json())
    else:
        say(_outcome(job, short))
    return 0 if job.status is COMPLETED else WAS_CANCELLED if job.status is CANCELLED else ENDED_IN_ERROR


class _Minder(Thread):
    """Keeps a worker at the job: one that was killed is followed by another. When none stays, whoever follows the job
    is woken, who would else wait for ever."""

    def __init__(self, start: Callable[[], Popen[bytes]], has_ended: Callable[[], bool]) -> None:
        super().__init__(name="mam-minder", daemon=True)
        self._start_worker = start
        self._has_ended = has_ended
        self.gave_up = False

    def run(self) -> None:
        try:
            for _ in range(WORKERS):
                self._start_worker().wait()
                if self._has_ended():
                    return
        except (MamError, OSError):
            pass  # a store that is away is met by whoever follows, too
        from _thread import interrupt_main

        self.gave_up = True
        interrupt_main()


def _until_ended(registry: Registry, job: Job, *, quietly: bool) -> Job:
    """Attempt by attempt: one that is lost or retried is followed by the next, and one that is over before anybody
    saw it run is shown all the same. Why one came back is said once."""
    shown, told = 0, None
    for seen in registry.follow([job.job_id]):
        if seen.status is PENDING and seen.attempt and seen.reason not in (None, told) and not quietly:
            told = seen.reason
            say(f"{seen.job_id[:ID_PREFIX_SHOWN]} is tried again: {one_line(told)}")
        if seen.attempt > shown and not quietly:
            shown = seen.attempt
            print_output(_output(registry, seen))
    return registry.get(job.job_id)


def _output(registry: Registry, job: Job) -> Iterator[bytes]:
    from mam.work.output_log import follow as follow_output

    def ended() -> bool:
        now = registry.store.get(job.job_id)
        return now.status is not RUNNING or now.attempt != job.attempt

    return follow_output(output_log(registry, job, job.attempt), ended, look_seconds=LOOK_SECONDS)


def _detach(registry: Registry, job: Job, short: str) -> int:
    try:
        say(f"detached; {short} goes on. Ctrl-C again within {SECOND_SECONDS:g} s cancels it")
        time.sleep(SECOND_SECONDS)
    except KeyboardInterrupt:
        try:
            registry.cancel(job.job_id, reason="Ctrl-C")
        except MamError as error:
            say(str(error))  # it may have ended meanwhile
            return DETACHED
        say(f"cancelled {short}")
        return WAS_CANCELLED
    say(f"come back with `mam output {short} --follow`, wait with `mam wait {short}`, stop with `mam cancel {short}`")
    return DETACHED


def _outcome(job: Job, short: str) -> str:
    took = (job.run or {}).get("wall_seconds")
    after = f" after {took:.1f} s" if isinstance(took, int | float) else ""
    if job.status is COMPLETED:
        return f"{short} completed{after}{'' if job.checked else ' (unchecked)'}"
    # Some reasons are whole sentences, with their full stop.
    why = f": {one_line(job.reason).removesuffix('.')}" if job.reason and job.reason != job.status else ""
    return f"{short} {in_words(job.status)}{after}{why}; `mam logs {short}` tells how"
