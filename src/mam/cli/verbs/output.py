"""Show what a job's agent did, during the run or afterwards.

On a terminal, the run of a coding agent is a conversation: what it said, the tools that it used, the files that it
changed. --full unfolds what tools returned and what the agent thought. Output of other programs keeps its colours; mam
removes other escape sequences. In a pipe, or with --raw, the output is byte for byte. --json prints one item of the
conversation a line. For an agent on another host, mam shows what its worker copied into the store. `mam logs` shows the
history of the job.
"""

from __future__ import annotations

import os
import sys

from mam.cli.args.options import add_job, named_job, number, registry_of
from mam.cli.render.streams import say, stdout_is_terminal
from mam.errors import BadInput, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mam.cli.args.parser import Options, Parser
    from mam.jobs.record import Job
    from mam.registry import Registry
    from mam.work.output_source import OutputSource


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
    source = output_source(registry, job, attempt)
    if not source.exists() and not (options.follow and not job.status.ended):
        raise Refused(why=f"Job {job.job_id} has no output {_why_none(job, attempt)}.")
    since = 0 if options.tail is None else source.tail_start(options.tail)
    chunks = _followed(registry, job, attempt, since) if options.follow else source.read(since)
    if options.json:
        from mam.cli.render.conversation_stream import print_items

        print_items(job.agent, chunks)
    else:
        print_output(job, chunks, live=options.follow, raw=options.raw, full=options.full)
    return 0


def output_source(registry: Registry, job: Job, attempt: int) -> OutputSource:
    from mam.work.output_source import output_of

    return output_of(registry, job.job_id, attempt)


def print_output(
    job: Job, chunks: Iterable[bytes], *, live: bool, raw: bool = False, full: bool = False, with_end: bool = True
) -> None:
    """On a terminal as a conversation, or without escape sequences other than colours; in a pipe unchanged."""
    if raw or not stdout_is_terminal():
        _write(chunks)
        return
    from mam.cli.render.conversation_stream import conversation_reader, print_conversation
    from mam.util.escapes import EscapeFilter

    reader = conversation_reader(job.agent)
    if reader is None:
        escapes = EscapeFilter()
        _write(escapes.filter(chunk) for chunk in chunks)
    else:
        print_conversation(job, reader, chunks, live=live, full=full, with_end=with_end)


def _write(chunks: Iterable[bytes]) -> None:
    for chunk in chunks:
        sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()


def _followed(registry: Registry, job: Job, attempt: int, since: int) -> Iterator[bytes]:
    """New output, until this attempt no longer holds the job."""
    job = _begun(registry, job, attempt)
    attempt = max(attempt, job.attempt) if attempt == 0 else attempt

    def ended() -> bool:
        now = registry.store.get(job.job_id)
        return now.status != "running" or now.attempt != attempt

    source = output_source(registry, job, attempt)
    if source.exists() or not ended():
        yield from source.follow(ended, since)
    if not source.exists():
        say(f"job {job.job_id[:8]} has no output {_why_none(registry.get(job.job_id), attempt)}")


def _begun(registry: Registry, job: Job, attempt: int) -> Job:
    """Wait until the job runs or has ended."""
    if job.status.ended or (job.status == "running" and job.attempt >= attempt > 0):
        return job
    if job.status != "running":
        say(f"job {job.job_id[:8]} is {job.status}; the output follows when it runs")
        for seen in registry.follow([job.job_id]):
            if seen.status == "running" or seen.status.ended:
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
