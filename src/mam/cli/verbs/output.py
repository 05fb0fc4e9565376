"""Show what a job's agent did, during the run or afterwards.

On a terminal, the run of a coding agent is a conversation: what it said, the tools that it used, the files that it
changed. --full unfolds what tools returned and what the agent thought. Output of other programs keeps its colours; mam
removes other escape sequences. In a pipe, or with --raw, the output is byte for byte. --json prints one item of the
conversation a line. For an agent on another host, mam shows what its worker copied into the store. `mam logs` shows the
history of the job.
"""

from __future__ import annotations

import os

from mam.cli.args.options import add_job, named_job, number, registry_of
from mam.cli.attempt_output import AttemptOutput, View
from mam.cli.render.streams import say
from mam.errors import BadInput, Refused
from mam.jobs.status import RUNNING
from mam.work.output_source import output_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser
    from mam.jobs.record import Job
    from mam.registry import Registry


def add_arguments(parser: Parser) -> None:
    add_job(parser)
    parser.add_argument("--follow", "-f", action="store_true", help="follow the output until the attempt ends")
    parser.add_argument("--attempt", type=number, metavar="N", help="the attempt; default: the latest")
    parser.add_argument("--tail", type=number, metavar="N", help="only the last N lines of the output")
    parser.add_argument("--full", action="store_true", help="unfold thoughts, results of tools, and changes")
    parser.add_argument("--raw", action="store_true", help="byte for byte, also on a terminal")


def run(options: Options) -> int:
    if options.raw and options.json:
        raise BadInput(why="give --raw or --json, not both")
    if options.tail is not None and options.tail < 1:
        raise BadInput(why="--tail takes a number of lines from 1")
    registry = registry_of(options)
    job = registry.get(named_job(options))
    attempt = job.attempt if options.attempt is None else options.attempt
    source = output_of(registry, job.job_id, attempt)
    if not source.exists() and not (options.follow and not job.status.ended):
        raise Refused(why=f"Job {job.job_id} has no output {_why_none(job, attempt)}.")
    since = 0 if options.tail is None else source.tail_start(options.tail)
    output = AttemptOutput(registry=registry, job=job, attempt=attempt, source=source, since=since)
    view = View(raw=options.raw, full=options.full, as_json=options.json)
    if options.follow:
        _follow(output, view)
    else:
        output.print(view)
    return 0


def _follow(output: AttemptOutput, view: View) -> None:
    """New output, until this attempt no longer holds the job."""
    registry, attempt = output.registry, output.attempt
    job = _begun(registry, output.job, attempt)
    attempt = max(attempt, job.attempt) if attempt == 0 else attempt
    source = output_of(registry, job.job_id, attempt)
    if source.exists() or (job.status == RUNNING and job.attempt == attempt):
        output.replace(job=job, attempt=attempt, source=source).follow(view)
    if not source.exists():
        say(f"job {job.job_id[:8]} has no output {_why_none(registry.get(job.job_id), attempt)}")


def _begun(registry: Registry, job: Job, attempt: int) -> Job:
    """Wait until the job runs or has ended."""
    if job.status.ended or (job.status == RUNNING and job.attempt >= attempt > 0):
        return job
    if job.status != RUNNING:
        say(f"job {job.job_id[:8]} is {job.status}; the output follows when it runs")
        for seen in registry.follow([job.job_id]):
            if seen.status == RUNNING or seen.status.ended:
                return seen
    return job


def _why_none(job: Job, attempt: int) -> str:
    host = (job.run or {}).get("host")
    if not attempt:
        return "here: it has not run yet"
    session = (job.run or {}).get("session")
    if isinstance(session, dict):
        return f"here: it ran in the live session {session.get('name')} (`mam agents attach` shows it)"
    if isinstance(host, str) and host != os.uname().nodename:
        return f"here: it ran on {host}, and the store has none of it ([output] in the settings of that worker)"
    return f"here: no worker of this user on this host ran attempt {attempt}"
