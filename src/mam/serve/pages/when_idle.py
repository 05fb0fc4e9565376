"""Why jobs of a list are not running, in one sentence each, with the predicates of `mam explain`.

`explain` counts the jobs ahead, which takes long for each of fifty rows; a list does without.
"""

from __future__ import annotations

import os
from functools import cached_property
from shlex import quote

from mam.jobs.continuation import bound_host
from mam.jobs.explain import ExplainContext, explain
from mam.jobs.pause import blocking_pause
from mam.jobs.question import open_questions
from mam.jobs.record import DEPENDENCY
from mam.jobs.status import PENDING, WAITING
from mam.jobs.sweep import left_ms
from mam.serve.pages.moments import words_of
from mam.util.safe_text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.access.reading import AuthorizedReading
    from mam.jobs.record import Job

NEEDED_LOOKED_AT = 20


class Reasons:
    """The facts about the store that several rows share, read once."""

    def __init__(self, reading: AuthorizedReading) -> None:
        self._reading = reading
        store = reading.registry.store
        self._now = store.clock.now()
        self._pauses = store.pauses()
        self._workers = reading.registry.live_workers()

    @cached_property
    def _busy(self) -> dict[str, int]:
        """How many places of each worker are taken; a job that asks may occupy none."""
        holders = self._reading.registry.holders()
        return {
            one.worker.name: sum(not open_questions(job) for job in one.jobs)
            for one in holders
            if one.worker is not None
        }

    def of(self, job: Job) -> str:
        """Empty for a job that runs or has ended."""
        if job.status is PENDING:
            return one_line(self._pending(job))
        if job.status is WAITING:
            return one_line(self._waiting(job))
        return ""

    def _pending(self, job: Job) -> str:
        pause = blocking_pause(self._pauses, job, self._now)
        if pause is not None:
            until = "until someone resumes it" if pause.until is None else f"until {pause.until[11:16]} UTC"
            why = f": {pause.reason}" if pause.reason else ""
            return f"{pause.scope} is paused {until}{why}"
        holder = None if job.exclusive is None else self._reading.registry.store.holder(job.exclusive)
        if holder not in (None, job.job_id):
            return f"waits for job {str(holder)[:8]}, which has the same exclusive key"
        host = bound_host(job)
        serving = [worker for worker in self._workers if worker.serves(job)]
        if not serving:
            where = f" on {host}" if host not in ("", os.uname().nodename) else ""
            return f"no live worker serves “{job.agent_session}”{where}: mam worker -s {quote(job.agent_session)}"
        if all(job.agent not in worker.agents for worker in serving):
            return f"no worker of “{job.agent_session}” can run {job.agent}"
        names = ", ".join(worker.host for worker in serving[:3])
        if all(self._busy.get(worker.name, 0) >= worker.concurrency for worker in serving):
            places = sum(worker.concurrency for worker in serving)
            return f"in the queue: the worker on {names} is full, with {places} job{'s' * (places != 1)} at a time"
        return f"in the queue of “{job.agent_session}”, which a worker on {names} serves"

    def _waiting(self, job: Job) -> str:
        if job.waiting_for != DEPENDENCY:
            return self._timed(job)
        after = job.after[:NEEDED_LOOKED_AT]
        needed = {job_id: self._reading.registry.store.newest(job_id) for job_id in after}
        if len(job.after) == 1:
            return explain(job, self._now, ExplainContext(needed=needed))[0].removeprefix("It ").rstrip(".")
        done = sum(found is not None and found.status == "completed" for found in needed.values())
        more = "" if len(after) == len(job.after) else f" of the first {len(after)}"
        return f"after {len(job.after)} others; {done}{more} {'is' if done == 1 else 'are'} done"

    def _timed(self, job: Job) -> str:
        left = left_ms(job, self._now)
        soon = "now" if left is None or left <= 0 else f"in {words_of(left // 1000)}"
        match job.waiting_for:
            case "time":
                return f"starts {soon}"
            case "retry":
                return f"tries again {soon} (retry {job.retries} of {job.max_retries}): {job.reason}"
            case "reset":
                return f"goes on {soon}, when the usage limit of {job.agent} is over"
        return explain(job, self._now, ExplainContext())[0].removeprefix("It ").rstrip(".")


def reason_of(reading: AuthorizedReading, job: Job) -> str:
    return Reasons(reading).of(job)
