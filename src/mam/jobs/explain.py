"""Explains why a job is not running, with the predicates that the claim uses."""

from __future__ import annotations

from shlex import quote

from mam.jobs.activity import job_state
from mam.jobs.continuation import bound_host
from mam.jobs.dependency import failed_dependency, open_dependencies
from mam.jobs.pause import Pause
from mam.jobs.question import first_line, open_questions, question_id
from mam.jobs.record import DEPENDENCY, Job
from mam.jobs.status import COMPLETED, PENDING, RUNNING, WAITING, in_words
from mam.jobs.sweep import is_due, is_quiet, left_ms
from mam.util.clock import Moment
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.jobs.dependency import Dependencies
    from mam.jobs.record import Json

_WAITS = {
    "retry": "its next try",
    "reset": "its agent's usage limit to reset",
    "time": "its start time",
    "session": "its session, which could not take it",
    "place": "its working directory, which the last worker did not have",
}


class ExplainContext(Frozen):
    """The facts about other jobs and the store that concern this job."""

    ahead: int = 0
    """How many pending jobs of its label are claimed first."""
    holder: str | None = None
    """The job that runs under its exclusive key; empty if the reader may not see that job."""
    pause: Pause | None = None
    needed: Dependencies = {}  # noqa: RUF012 - nothing writes into it
    last_event: Json | None = None
    """The last event of the job."""
    host: str = ""
    """The host that asks."""
    workers: tuple[str, ...] = ()
    """The live workers that serve the job."""
    has_able_worker: bool = True
    """Whether one of them can run its agent."""
    was_claimed: bool = True
    """Whether a job of its label was ever claimed."""

    def hiding(self, may_name: Callable[[str], bool]) -> ExplainContext:
        """The same for a reader who must not learn the ids of some jobs."""
        holder, pause = self.holder, self.pause
        if holder is not None and not may_name(holder):
            holder = ""
        if pause is not None and pause.probe is not None and not may_name(pause.probe):
            pause = pause.replace(probe="")
        return self.replace(holder=holder, pause=pause)


def explain(job: Job, moment: Moment, around: ExplainContext) -> list[str]:
    """Sentences for a person: what blocks the job, and what will unblock it."""
    if job.status is PENDING:
        return _pending(job, moment, around)
    if job.status is WAITING and job.waiting_for == DEPENDENCY:
        return _waiting_for_jobs(job, around.needed)
    if job.status is WAITING:
        return _waiting(job, moment)
    if job.status is RUNNING:
        return _running(job, moment, around.last_event)
    return _ended(job, around)


def hindrances(job: Job, moment: Moment, around: ExplainContext) -> list[str]:
    """Only what keeps a job from running now; empty if a worker can claim it, or has."""
    if job.status is WAITING:
        return explain(job, moment, around)
    return _blockers(job, moment, around) if job.status is PENDING else []


def _pending(job: Job, moment: Moment, around: ExplainContext) -> list[str]:
    blockers = _blockers(job, moment, around)
    sentences = [*blockers] or [f"Any worker that serves the label {job.agent_session!r} can claim it now."]
    if around.ahead:
        jobs = "job" if around.ahead == 1 else "jobs"
        sentences.append(f"{around.ahead} pending {jobs} of that label will be claimed first.")
    elif blockers:
        sentences.append(f"Then it is the next one of its label, {job.agent_session!r}.")
    else:
        sentences.append("It is the next one of that label, and no worker has claimed it since it became pending.")
    sentences += _service(job, around)
    if job.losses:
        sentences.append(f"It was lost {job.losses} of {job.max_losses} times: a holder's lease expired.")
    if job.reason and job.attempt:
        sentences.append(f"Its last attempt: {job.reason.removesuffix('.')}.")
    return sentences


def _service(job: Job, around: ExplainContext) -> list[str]:
    if not around.workers:
        return [unserved(job.agent_session, was_claimed=around.was_claimed)]
    sentences = [f"Live workers that serve its label: {', '.join(around.workers)}."]
    if not around.has_able_worker:
        sentences.append(f"None of them can run its agent, {job.agent!r}; a worker that claims it ends it in error.")
    return sentences


def unserved(label: str, *, was_claimed: bool) -> str:
    """That no live worker serves a label, and how to start one."""
    session = label.removeprefix("tmux:")
    serve = f"-s {quote(label)}" if session == label else f"--in {quote(session)}"
    never = "" if was_claimed else ", and none has claimed a job of it yet"
    return f"No live worker serves the label {label!r}{never}; `mam worker {serve}` starts one."


def _blockers(job: Job, moment: Moment, around: ExplainContext) -> list[str]:
    sentences = []
    pause = around.pause
    if pause is not None:
        left = pause.left_ms(moment)
        until = "until `mam resume`" if left is None else f"until {pause.until}, {_relative_time(left)}"
        why = f" ({pause.reason})" if pause.reason else ""
        sentences.append(f"It is paused with {pause.scope}, {until}{why}.")
        if pause.probe is not None:
            probe = f"job {pause.probe}" if pause.probe else "another job"
            sentences.append(f"The pause ends earlier if {probe}, which is tried first, gets an answer.")
    host = bound_host(job)
    if host not in ("", around.host):
        sentences.append(f"It continues a conversation that is on {host}; only a worker there can claim it.")
    if around.holder is not None:
        holder = f"Job {around.holder}" if around.holder else "Another job"
        sentences.append(f"{holder} runs under the same exclusive key {job.exclusive!r}; only one may.")
    return sentences


def _waiting_for_jobs(job: Job, needed: Dependencies) -> list[str]:
    called_off = failed_dependency(job, needed)
    if called_off is not None:
        failed, why = called_off
        return [f"It comes after job {failed}, which {why}: the next `pick` or `wait` cancels it."]
    waits = open_dependencies(job, needed)
    if not waits:
        return ["The jobs that it waited for have ended: the next `pick` or `wait` makes it pending."]
    return [_open_dependency(job_id, needed.get(job_id)) for job_id in waits]


def _open_dependency(job_id: str, found: Job | None) -> str:
    if found is None:
        ways = "`mam cancel` it, or `mam status --set pending` lets it run"
        return f"It waits for job {job_id}, which no longer exists; {ways}."
    name = job_id if found.job_id == job_id else f"{found.job_id}, the retry of {job_id}"
    if not found.status.ended:
        return f"It waits for job {name}, which is {found.status}."
    return f"It waits for job {name}, which {in_words(found.status)}; `mam retry {found.job_id[:8]}` replaces it."


def _waiting(job: Job, moment: Moment) -> list[str]:
    what = _WAITS.get(job.waiting_for or "", job.waiting_for or "something")
    left = left_ms(job, moment)
    was_refused = job.waiting_for in ("place", "session")
    when = "" if left is None else f"{'; it is tried again' * was_refused} at {job.due_at}, {_relative_time(left)}"
    sentences = [f"It waits for {what}{when}."]
    if was_refused and job.reason:
        sentences.append(job.reason)
    if job.waiting_for == "retry":
        sentences.append(f"Retry {job.retries} of {job.max_retries}, after: {job.reason}.")
    if is_due(job, moment):
        sentences.append("That time has passed: the next `pick` or `wait` makes it pending.")
    return sentences


def _running(job: Job, moment: Moment, last_event: Json | None) -> list[str]:
    where = "" if job.host is None else f" on {job.host}"
    sentences = [f"It is running{where}: attempt {job.attempt}, held by {job.owner or 'an unnamed owner'}."]
    sentences.append(_doing(job, moment, last_event))
    for question in open_questions(job):
        which = question_id(job.job_id[:8], question.number)
        asks = _as_sentence(first_line(question.text))
        sentences.append(f"It asks a person: {asks} `mam answer {which}` shows it and answers it.")
    if job.lease is not None:
        left = job.lease.left_ms(moment)
        expiry = f"{job.lease.expires_at}, {_relative_time(left)}"
        sentences.append(
            f"Its lease expired at {expiry}. The next `pick` or `wait` returns it to pending."
            if left <= 0
            else f"Its lease expires at {expiry}. No other worker can claim it until then."
        )
    if is_quiet(job, moment):
        sentences.append(f"It is quiet: no sign of life since {job.heard_at or job.updated_at}.")
    return sentences


def _doing(job: Job, moment: Moment, last_event: Json | None) -> str:
    state = job_state(job, last_event, moment)
    why = f": {state.why}" if state.why else ""
    return _as_sentence(f"Its agent: {state.format_at(moment.wall_ms)}{why}")


def _as_sentence(text: str) -> str:
    return text if text.endswith((".", "?", "!", "…")) else f"{text}."


def _ended(job: Job, around: ExplainContext) -> list[str]:
    where = [] if job.host in (None, around.host) else [f"It ran on {job.host}."]
    if job.status is COMPLETED:
        why = "its artifacts were not verified" if job.expected_artifacts else "it expected no artifacts"
        checked = "" if job.checked else f" (unchecked: {why})"
        return [f"It completed at {job.ended_at or job.updated_at}{checked}.", *where]
    # Some reasons end with a full stop.
    why = f": {job.reason.removesuffix('.')}" if job.reason and job.reason != job.status else ""
    return [
        f"It {in_words(job.status)} at {job.ended_at or job.updated_at}{why}.",
        *where,
        f"`mam retry {job.job_id[:8]}` registers it again as a new job.",
    ]


def _relative_time(left_ms: int) -> str:
    """`in 1 h 59 min`, `3 s ago`: the two largest units, rounded to whole seconds."""
    seconds = round(abs(left_ms) / 1000)
    parts = []
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count} {unit}")
    span = " ".join(parts[:2]) or "0 s"
    return f"{span} ago" if left_ms <= 0 else f"in {span}"
