"""Wait until jobs have ended; the exit code is their outcome.

The exit code is 0 if all completed, 7 if one ended in error, 8 if one was cancelled, and 5 if the wait took longer than
--timeout.

  mam wait JOB... [--timeout 30m]
  mam wait --label tmux:claude --since 1h

The filters select the same jobs as those of `mam list`. In a pipe, mam prints one line for each job that ends: id, tab,
status.
"""

from __future__ import annotations

import os
import sys

from mam.cli.args.job_selection import add_jobs, check_selection, named_jobs, selected_jobs
from mam.cli.args.options import job_registry, registry_of
from mam.cli.render.progress import EndedBar, EndedLines
from mam.cli.render.streams import print_json_array, say, say_error
from mam.errors import MamError
from mam.jobs.input_rules import ID_PREFIX_SHOWN
from mam.jobs.status import CANCELLED, ERROR, PENDING, WAITING, Status
from mam.util.human_time import parse_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.options import AnyRegistry
    from mam.cli.args.parser import Options, Parser
    from mam.jobs.record import Job

ENDED_IN_ERROR, WAS_CANCELLED = 7, 8


def add_arguments(parser: Parser) -> None:
    add_jobs(parser)
    parser.add_argument("--timeout", type=parse_duration, metavar="S", help="give up after this time (exit 5)")


def run(options: Options) -> int:
    check_selection(options)
    jobs, registry = _jobs(options)
    if not jobs:
        say("no job matches")
    ids, first_error = _resolved(registry, jobs, as_json=options.json)
    _warn_of_deadlock(registry, ids)
    latest: dict[str, Job] = {}
    try:
        _follow(registry, ids, options, latest)
    finally:
        if options.json:
            print_json_array(latest[job_id].to_json() for job_id in ids if job_id in latest)
    statuses = {job.status for job in latest.values()}
    if ERROR in statuses:
        return ENDED_IN_ERROR
    return WAS_CANCELLED if CANCELLED in statuses else first_error


def _jobs(options: Options) -> tuple[list[str], AnyRegistry]:
    """A worker's door knows jobs by name; filters need the store."""
    if named := named_jobs(options):
        return named, job_registry(options)
    registry = registry_of(options)
    return selected_jobs(options, registry, Status), registry


def _follow(registry: AnyRegistry, ids: list[str], options: Options, latest: dict[str, Job]) -> None:
    with _progress(len(ids)) as progress:
        for job in registry.follow(ids, options.timeout):
            latest[job.job_id] = job
            if job.status.ended and not options.json:
                progress.ended(job)
            progress.show(latest.values())


def _resolved(registry: AnyRegistry, jobs: list[str], *, as_json: bool) -> tuple[list[str], int]:
    """Full ids, and the exit code of the first name without a job; the wait for the others continues."""
    ids: dict[str, None] = {}
    first_error = 0
    for job in jobs:
        try:
            ids[registry.resolve(job)] = None
        except MamError as error:
            say_error(error, as_json=as_json)
            first_error = first_error or error.exit_code
    return list(ids), first_error


def _warn_of_deadlock(registry: AnyRegistry, ids: list[str]) -> None:
    """A job that waits for a job of its own label occupies the worker that would have to run that job."""
    own = os.environ.get("MAM_JOB_ID")
    if not own:
        return
    try:
        label = registry.get(own).agent_session
        stuck = [job_id for job_id in ids if _needs_worker(registry.get(job_id), label)]
    except MamError:
        return  # only a warning; the wait itself reports the error
    if stuck:
        whom = (
            f"{stuck[0][:ID_PREFIX_SHOWN]} and {len(stuck) - 1} more are"
            if stuck[1:]
            else f"{stuck[0][:ID_PREFIX_SHOWN]} is"
        )
        say(f"{whom} for the label {label} of this job: without a second worker for it, this wait never ends")


def _needs_worker(job: Job, label: str) -> bool:
    return job.agent_session == label and job.status in (PENDING, WAITING)


def _progress(total: int) -> EndedLines:
    watched = total and sys.stderr is not None and sys.stderr.isatty()
    return EndedBar(total) if watched else EndedLines()
