"""Report an event of a job; print its number.

Events: started, permission_required, progress, completed, error.

  mam publish JOB progress --detail "half of the tests pass"

mam stores the event with the job. started, completed and error also change its status; every event renews the lease. If
a broker is configured, the running worker or relay sends the event there, otherwise this command does. While the broker
is unavailable, the event waits in the journal.
"""

from __future__ import annotations

import os

from mam.cli.args.options import add_attempt, job_registry, own_fence
from mam.cli.render.streams import print_job
from mam.cli.send_event import add_broker, deliver
from mam.errors import BadInput
from mam.jobs.input_rules import REASON_LIMIT, check_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.cli.args.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    parser.usage = "mam publish [JOB] EVENT [--detail TEXT] [--data JSON] [--attempt N]"
    parser.add_argument("words", nargs="*", metavar="[JOB] EVENT", help="the job (default: MAM_JOB_ID) and the event")
    parser.add_argument("--job", metavar="JOB", help="the job")
    parser.add_argument("--event", metavar="EVENT", help="the event")
    parser.add_argument("--detail", default="", metavar="TEXT", help="one line of text")
    parser.add_argument("--data", metavar="JSON", help="a JSON object, at most 64 levels deep")
    add_attempt(parser)
    add_broker(parser)


def run(options: Options) -> int:
    publish(options)
    return 0


def publish(options: Options) -> bool:
    """Returns whether there is a broker for the event."""
    name, event = _job_and_event(options)
    detail, data = check_text("detail", options.detail, REASON_LIMIT), _data(options.data)
    registry = job_registry(options)
    fence = own_fence(options, registry, name)
    job = registry.publish(name, event=event, detail=detail, data=data, **fence)
    print_job(job, as_json=options.json, line=str(job.last_seq))
    return deliver(options, registry, job)


def _job_and_event(options: Options) -> tuple[str, str]:
    words: list[str] = options.words if options.event is None else [*options.words, options.event]
    if options.job is not None:
        words = [options.job, *words]
    elif len(words) == 1 and os.environ.get("MAM_JOB_ID"):
        words = [os.environ["MAM_JOB_ID"], *words]
    if len(words) != 2:
        raise BadInput(why="give a job and an event: `mam publish JOB progress --detail TEXT`")
    if not os.environ.get("MAM_SOCKET"):  # the worker checks the event, which saves the import here
        from mam.events.event import check_event

        check_event(words[1])
    return words[0], words[1]


def _data(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    from mam.events.data import parse_data

    return parse_data(check_text("data", text, REASON_LIMIT))
