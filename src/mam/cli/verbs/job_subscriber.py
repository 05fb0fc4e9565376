"""The old script job_subscriber.py: print the events of jobs until the jobs have ended.

The exit code is 0 if all completed, 1 if one ended in error or was cancelled, and 2 if one took longer than --timeout
or sent nothing for longer than --idle-timeout. Both default to the job's own timeouts, and both run from the start.

  job_subscriber.py --job JOB
  job_subscriber.py --wait-any      # every job that is pending, waiting or running now
"""

from __future__ import annotations

from mam.cli.event_following import EventFollowing, open_following
from mam.cli.render.streams import print_json_line, print_row, say
from mam.cli.send_event import add_broker
from mam.errors import BadInput
from mam.jobs.input_rules import ID_PREFIX_SHOWN
from mam.jobs.status import PENDING, RUNNING, WAITING
from mam.stores.port import Query
from mam.util.human_time import parse_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.cli.args.parser import Options, Parser

COMPLETED, ENDED_IN_ERROR, TIMED_OUT = 0, 1, 2


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--job", action="append", default=[], metavar="JOB", help="a job; repeatable")
    parser.add_argument("--wait-any", action="store_true", help="every job that has not ended")
    parser.add_argument("--timeout", type=parse_duration, metavar="S", help="give up after this time, 0 for never")
    parser.add_argument(
        "--idle-timeout", type=parse_duration, metavar="S", help="give up after this time without an event"
    )
    add_broker(parser)


def run(options: Options) -> int:
    if bool(options.job) == options.wait_any:
        raise BadInput(why="give --job JOB, or --wait-any")
    following = open_following(options)
    registry = following.registry
    if options.wait_any:
        jobs = list(registry.select(Query(statuses=frozenset({PENDING, WAITING, RUNNING}))))
    else:
        jobs = [registry.get(name) for name in dict.fromkeys(options.job)]
    if not jobs:
        say("no job is pending, waiting or running")
    for job in jobs:
        following.add(job, idle_from_start=True)
    following.run(print_json_line if options.json else _print_line)
    return _exit_code(following)


def _print_line(event: dict[str, Any]) -> None:
    text = f"{event['timestamp']} job={event['job_id']} seq={event['seq']} {event['event']:<20} {event['detail']}"
    print_row(text)


def _exit_code(following: EventFollowing) -> int:
    for job_id, ran_out in following.expired.items():
        say(f"{job_id[:ID_PREFIX_SHOWN]} {'is gone' if ran_out == 'gone' else f'{ran_out} within its timeout'}")
    if "gone" in following.expired.values():
        return ENDED_IN_ERROR
    if following.expired:
        return TIMED_OUT
    return COMPLETED if set(following.statuses.values()) <= {"completed"} else ENDED_IN_ERROR
