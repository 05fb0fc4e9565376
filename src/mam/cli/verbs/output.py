"""Show what a job's agent printed, during the run or afterwards.

On a terminal, mam removes escape sequences other than colours. In a pipe, the output is byte for byte. If the agent ran on
another host, mam shows what its worker copied into the store. `mam logs` shows the history of the job.
"""

from __future__ import annotations

import os
import sys

from mam.cli.args.options import add_job, named_job, number, registry_of
from mam.cli.render.streams import print_json, say
from mam.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.cli.args.parser import Options, Parser
    from mam.jobs.record import Job
    from mam.registry import Registry
    from mam.work.output_source import LocalOutput, StoredOutput


def add_arguments(parser: Parser) -> None:
    add_job(parser)
    parser.add_argument("--follow", "-f", action="store_true", help="follow the output until the attempt ends")
    parser.add_argument("--attempt", type=number, metavar="N", help="the attempt; default: the latest")


def run(options: Options) -> int:
    registry = registry_of(options)
    job = registry.get(named_job(options))
    attempt = job.attempt if options.attempt is None else options.attempt
    source = output_source(registry, job.job_id, attempt)
    if not source.exists() and not (options.follow and not job.status.ended):
        raise Refused(why=f"Job {job.job_id} has no output{_why_none(job, attempt)}.")
    if options.json:
        return _as_json(job, attempt, source)
    chunks = _followed(registry, job, attempt) if options.follow else source.read()
    print_output(chunks)
    return 0


def output_source(registry: Registry, job_id: str, attempt: int) -> LocalOutput | StoredOutput:
    from mam.work.output_source import output_of

    return output_of(registry, job_id, attempt)


def print_output(chunks: Iterator[bytes]) -> None:
    """On a terminal without escape sequences other than colours, in a pipe unchanged."""
    from mam.cli.render.escapes import EscapeFilter

    escapes = EscapeFilter() if sys.stdout.isatty() else None
    for chunk in chunks:
        sys.stdout.buffer.write(chunk if escapes is None else escapes.filter(chunk))
        sys.stdout.buffer.flush()


def _followed(registry: Registry, job: Job, attempt: int) -> Iterator[bytes]:
    """New output, until this attempt no longer holds the job."""
    job = _begun(registry, job, attempt)
    attempt = max(attempt, job.attempt) if attempt == 0 else attempt

    def ended() -> bool:
        now = registry.store.get(job.job_id)
        return now.status != "running" or now.attempt != attempt

    source = output_source(registry, job.job_id, attempt)
    if source.exists() or not ended():
        yield from source.follow(ended)


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


def _as_json(job: Job, attempt: int, source: LocalOutput | StoredOutput) -> int:
    text = b"".join(source.read()).decode(errors="replace")
    print_json({"job_id": job.job_id, "attempt": attempt, "output": text})
    return 0


def _why_none(job: Job, attempt: int) -> str:
    host = (job.run or {}).get("host")
    if not job.attempt:
        return ": it has not run yet"
    if isinstance(host, str) and host != os.uname().nodename:
        return f" here: it ran on {host}, whose worker stored none ([output] in its settings), or its time is over"
    return f" here: no worker of this user on this host ran attempt {attempt}, and the store has none"
