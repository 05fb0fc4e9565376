"""Renew the lease of a job; print when it expires."""

from __future__ import annotations

from mam.cli.args.options import add_attempt, add_job, job_registry, own_fence, own_job
from mam.cli.render.streams import print_job
from mam.util.human_time import parse_lease_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    add_job(parser, own=True)
    add_attempt(parser)
    parser.add_argument(
        "--lease", type=parse_lease_seconds, metavar="S", help="the length of the lease; default: as before"
    )


def run(options: Options) -> int:
    name = own_job(options)
    registry = job_registry(options)
    fence = own_fence(options, registry, name)
    job = registry.heartbeat(name, **fence, lease_seconds=options.lease)
    print_job(job, as_json=options.json, line=job.lease.expires_at if job.lease else job.status)
    return 0
