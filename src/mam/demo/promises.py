"""The promises of the demo, checked at the end; a broken one makes `mam demo` fail."""

from __future__ import annotations

from mam.demo.demo_jobs import BOOK, CHAPTERS, CRAWL, KILLED_WORKER, REINDEX, REPORT, UPLOAD, demo_jobs
from mam.errors import ClaimLost
from mam.jobs.status import CANCELLED, COMPLETED, ERROR
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.demo.sandbox import Sandbox
    from mam.demo.scenario import Scenario
    from mam.demo.timelines import Timeline

STALE_CLAIM = 4
"""The exit code of a command whose claim is no longer valid."""


class Promise(Frozen):
    text: str
    problem: str | None = None

    @property
    def kept(self) -> bool:
        return self.problem is None


def check_promises(sandbox: Sandbox, scenario: Scenario) -> list[Promise]:
    by_job = scenario.timelines.by_job
    by_name = {name: by_job[job_id] for name, job_id in scenario.ids.items()}
    left = sandbox.wait_until_gone(scenario.timelines.processes_of(by_job), include_marked=True)
    return [
        Promise(
            text="Four jobs ran in parallel and reported their progress.",
            problem=_fan_out([by_name[name] for name in CHAPTERS]),
        ),
        Promise(text="The book started only after all of its chapters had completed.", problem=_order(by_name)),
        Promise(text=f"{UPLOAD} failed, waited, and was retried.", problem=_retry(sandbox, by_name[UPLOAD])),
        Promise(
            text=f"{REPORT} reported success; the worker checked it, and the job ended in error.",
            problem=_rejected_claim(sandbox, by_name[REPORT]),
        ),
        Promise(
            text=f"{CRAWL} was cancelled while it ran, with its child jobs and processes.",
            problem=_cancelled_tree(by_job, by_name[CRAWL], scenario.tree_left),
        ),
        Promise(
            text=f"{KILLED_WORKER} was killed with -9; another worker finished its job.",
            problem=_taken_over(by_name[REINDEX]),
        ),
        Promise(
            text=f"A late write of {KILLED_WORKER}'s attempt is rejected (exit {STALE_CLAIM}) and changes nothing.",
            problem=_stale_claim(sandbox, by_name[REINDEX]),
        ),
        Promise(text="Every job ended as expected, exactly once.", problem=_once(by_job, scenario)),
        Promise(
            text="No process was left running.", problem=_left_running(left, stopped_cleanly=scenario.stopped_cleanly)
        ),
    ]


def _fan_out(by_job: list[Timeline]) -> str | None:
    silent = [timeline.name for timeline in by_job if len(timeline.progress_at) < 3]
    if silent:
        return f"{', '.join(silent)} sent too few progress events"
    begun = max(timeline.attempts[0].since for timeline in by_job)
    ended = min(timeline.spans[-1].since for timeline in by_job)
    return None if begun < ended else "they did not run in parallel"


def _order(by_name: dict[str, Timeline]) -> str | None:
    ready = max(by_name[name].spans[-1].since for name in CHAPTERS)
    return None if by_name[BOOK].attempts[0].since >= ready else "it started too early"


def _retry(sandbox: Sandbox, timeline: Timeline) -> str | None:
    job = sandbox.registry.get(timeline.job_id)
    return None if job.retries == 1 and job.status is COMPLETED else f"it is {job.status} after {job.retries} retries"


def _rejected_claim(sandbox: Sandbox, timeline: Timeline) -> str | None:
    job = sandbox.registry.get(timeline.job_id)
    if (job.said or {}).get("status") != COMPLETED:
        return "it did not report success"
    return None if job.status is ERROR and (job.checks or {}).get("problem") else f"it is {job.status}"


def _cancelled_tree(by_job: dict[str, Timeline], root: Timeline, left: list[int]) -> str | None:
    tree = [timeline for timeline in by_job.values() if root.job_id in (timeline.job_id, timeline.parent)]
    wrong = [timeline.name for timeline in tree if timeline.state is not CANCELLED or not timeline.attempts]
    if len(tree) != 3:
        return f"there were {len(tree)} jobs instead of three"
    if left:
        return f"these processes continued: {', '.join(map(str, left))}"
    return f"not cancelled: {', '.join(wrong)}" if wrong else None


def _taken_over(timeline: Timeline) -> str | None:
    owners = [span.owner for span in timeline.attempts]
    if owners[0] != KILLED_WORKER or owners[-1] == KILLED_WORKER:
        return f"it was held by {', '.join(map(str, owners))}"
    return None if timeline.state is COMPLETED else f"it is {timeline.state}"


def _stale_claim(sandbox: Sandbox, timeline: Timeline) -> str | None:
    before = sandbox.registry.get(timeline.job_id)
    try:
        sandbox.registry.complete(timeline.job_id, attempt=1, result="too late")
    except ClaimLost as lost:
        unchanged = sandbox.registry.get(timeline.job_id) == before
        return None if unchanged and lost.exit_code == STALE_CLAIM else "the write was rejected, but the job changed"
    return "the write was accepted"


def _left_running(left: list[int], *, stopped_cleanly: bool) -> str | None:
    if left:
        return f"these processes still run: {', '.join(map(str, left))}"
    return None if stopped_cleanly else "a worker did not stop on SIGTERM"


def _once(by_job: dict[str, Timeline], scenario: Scenario) -> str | None:
    wrong = [
        f"{timeline.name} ended {timeline.ends_reached} times"
        for timeline in by_job.values()
        if (timeline.ends_reached, timeline.terminal_events) != (1, 1)
    ]
    for demo_job in demo_jobs():
        timeline = by_job[scenario.ids[demo_job.name]]
        if timeline.state is not demo_job.ends:
            wrong.append(f"{demo_job.name} is {timeline.state}")
        if len(timeline.attempts) < demo_job.attempts:
            wrong.append(f"{demo_job.name} had {len(timeline.attempts)} attempts")
    return "; ".join(wrong) or None
