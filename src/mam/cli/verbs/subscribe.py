"""Print the events of jobs until the jobs have ended.

The exit code is 0 if all completed, 7 if one ended in error, 8 if one was cancelled, and 5 if a job took longer than
--timeout or sent no event for longer than --idle-timeout. Both default to the job's own timeouts.

  mam subscribe JOB...
  mam subscribe --all --json

With a broker (MQTT_BROKER, or [broker] in config.toml), the events come from the broker, otherwise from the store. mam
prints an event that an earlier `mam subscribe` has printed only with --replay. The first --all starts now; a later one
continues where the last one ended.
"""

from __future__ import annotations

from mam.cli.event_following import EventFollowing, open_following
from mam.cli.render.streams import print_json_line, print_row, say, stdout_is_terminal
from mam.cli.send_event import add_broker
from mam.errors import BadInput, TimedOut, UnknownJob
from mam.jobs.input_rules import ID_PREFIX_SHOWN
from mam.jobs.status import PENDING, WAITING
from mam.util.human_time import parse_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.cli.args.parser import Options, Parser

ENDED_IN_ERROR, WAS_CANCELLED = 7, 8


def add_arguments(parser: Parser) -> None:
    parser.add_argument("words", nargs="*", metavar="JOB", help="ids, or unique prefixes of them")
    parser.add_argument("--job", action="append", default=[], metavar="JOB", help="a job, as JOB; repeatable")
    parser.add_argument(
        "--all", action="store_true", help="every job of the store, until stopped; continues where the last one ended"
    )
    parser.add_argument("--from-now", action="store_true", help="with --all: skip the events since the last one ended")
    parser.add_argument(
        "--timeout", type=parse_duration, metavar="S", help="give up after this time (exit 5), 0 for never"
    )
    parser.add_argument(
        "--idle-timeout", type=parse_duration, metavar="S", help="give up after this time without an event (exit 5)"
    )
    parser.add_argument("--replay", action="store_true", help="start with the first event, also those printed before")
    add_broker(parser)


def run(options: Options) -> int:
    named = list(dict.fromkeys(options.words + options.job))
    if bool(named) == options.all:
        raise BadInput(why="give the ids of jobs, or --all")
    following = open_following(options)
    if options.all:
        following.add_all(replay=options.replay, from_now=options.from_now)
    for job in [following.registry.get(name) for name in named]:
        # A job that has not started sends no events, so only an explicit --idle-timeout applies to it.
        following.add(job, idle_from_start=job.status not in (PENDING, WAITING))
    following.run(print_json_line if options.json else _print_event, replay=options.replay)
    return _exit_code(following, options)


def _print_event(event: dict[str, Any]) -> None:
    job_id = event["job_id"]
    shown = job_id[:ID_PREFIX_SHOWN] if stdout_is_terminal() else job_id
    print_row(shown, str(event["seq"]), event["event"], event["detail"])


def _exit_code(following: EventFollowing, options: Options) -> int:
    for job_id, ran_out in following.expired.items():
        if ran_out != "gone":
            say(f"{job_id[:ID_PREFIX_SHOWN]} {ran_out} within its timeout")
    if any(ran_out == "gone" for ran_out in following.expired.values()):
        return UnknownJob.exit_code
    if following.expired or options.all:
        return TimedOut.exit_code
    if "error" in following.statuses.values():
        return ENDED_IN_ERROR
    return WAS_CANCELLED if "cancelled" in following.statuses.values() else 0
