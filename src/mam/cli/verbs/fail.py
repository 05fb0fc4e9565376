"""End a job in error, or schedule a retry; print the status.

With --retryable, the job waits and is tried again, with a longer delay each time, until no retries are left.
"""

from __future__ import annotations

from mam.cli.args.options import add_attempt, add_job, job_registry, own_fence, own_job
from mam.cli.render.streams import print_job, say
from mam.cli.send_event import add_broker, deliver

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    add_job(parser, own=True)
    add_attempt(parser)
    add_broker(parser)
    parser.add_argument("--reason", required=True, metavar="TEXT", help="the reason, in one sentence")
    parser.add_argument("--retryable", action="store_true", help="the job may succeed later: wait, then retry")


def run(options: Options) -> int:
    name = own_job(options)
    registry = job_registry(options)
    fence = own_fence(options, registry, name)
    job = registry.fail(name, reason=options.reason, **fence, retryable=options.retryable)
    if job.status == "waiting":
        say(f"retry {job.retries} of {job.max_retries} can start at {job.due_at}")
    line = "reported; the worker ends it now" if job.status == "running" else job.status
    print_job(job, as_json=options.json, line=line)
    deliver(options, registry, job)
    return 0
