"""Show the artifacts that a job's worker found, or print one.

In a pipe: path, size, SHA-256, and `stored` or `not stored`, separated by tabs. A worker copies each artifact into the
store, so that --get prints it on any host. It does not copy an artifact that is too large, or that contains a secret of
the worker's environment; only the host that ran the job can print that one.
"""

from __future__ import annotations

import sys

from mam.cli.args.options import add_job, named_job, number, registry_of
from mam.cli.render.streams import print_json, print_row, say, stdout_is_terminal
from mam.registry.artifacts import read_artifact, stored_artifacts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser
    from mam.jobs.record import Job, Json


def add_arguments(parser: Parser) -> None:
    add_job(parser)
    parser.add_argument("--get", metavar="PATH", help="print the content of this artifact, byte for byte")
    parser.add_argument("--attempt", type=number, metavar="N", help="the attempt; default: the latest")


def run(options: Options) -> int:
    registry = registry_of(options)
    job = registry.get(named_job(options))
    attempt = job.attempt if options.attempt is None else options.attempt
    found = stored_artifacts(registry.store, job, attempt)
    if options.get is not None:
        sys.stdout.buffer.write(read_artifact(registry.store, job, attempt, options.get))
        return 0
    if options.json:
        print_json({"job_id": job.job_id, "attempt": attempt, "host": job.host, "artifacts": list(found.values())})
    elif not found:
        say(_why_none(job))
    elif stdout_is_terminal():
        from mam.cli.render.table import print_table

        print_table(("PATH", "BYTES", "SHA-256", "IN THE STORE"), [_columns(one) for one in found.values()])
    else:
        for one in found.values():
            print_row(*_columns(one))
    return 0


def _columns(one: Json) -> tuple[str, ...]:
    return one["path"], str(one["size"]), str(one["sha256"] or "-"), "stored" if one["is_stored"] else "not stored"


def _why_none(job: Job) -> str:
    if not job.expected_artifacts:
        return f"job {job.job_id[:8]} promised no artifacts; `mam register --artifact PATH` asks for them"
    return f"job {job.job_id[:8]} has none yet: a worker checks them when its agent has ended"
