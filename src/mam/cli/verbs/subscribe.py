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

import sys
import time

from mam.cli.render.streams import print_json_line, print_row, say, stdout_is_terminal
from mam.cli.send_event import add_broker
from mam.errors import BadInput, TimedOut, UnknownJob
from mam.jobs.input_rules import ID_PREFIX_SHOWN
from mam.jobs.status import PENDING, WAITING
from mam.util.human_time import parse_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.audit.sync import AuditLog
    from mam.bus.settings import Broker
    from mam.bus.subscriber import AllJobs, Subscriber
    from mam.cli.args.parser import Options, Parser
    from mam.config.settings import Config
    from mam.events.subscriber import Subscription
    from mam.jobs.record import Job
    from mam.registry import Registry
    from mam.stores.consumer import Consumer
    from mam.stores.port import Entry

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
    from mam.audit.sync import AuditLog
    from mam.bus.saved_position import subscribe_consumer
    from mam.bus.subscriber import Subscriber
    from mam.config.settings import load_config
    from mam.location.stores import locate, open_located

    named = list(dict.fromkeys(options.words + options.job))
    if bool(named) == options.all:
        raise BadInput(why="give the ids of jobs, or --all")
    config = load_config()
    located = locate(options.store, options.registry_dir, config)
    registry = open_located(located, config)
    log = AuditLog(located.logs_dir)
    bookmark = subscribe_consumer(registry.store, located.logs_dir)
    all_jobs = _everything(bookmark, log, options) if options.all else None
    listener = Subscriber(registry, _EventPrinter(registry, log, as_json=options.json), say, all_jobs=all_jobs)
    jobs = [registry.get(name) for name in named]
    for job in jobs:
        _subscribe(listener, registry, job, options, log)
    listener.ends = time.monotonic() + options.timeout if options.all and options.timeout else None
    broker = _broker(registry, jobs, config, options)
    try:
        if broker is None:
            listener.run_with_store()
        else:
            listener.run_with_broker(broker)
    finally:
        bookmark.save()
    return _outcome(listener, options)


def _everything(bookmark: Consumer, log: AuditLog, options: Options) -> AllJobs:
    from mam.bus.subscriber import AllJobs

    bookmark.load()
    if bookmark.is_new or options.from_now:
        bookmark.skip_to_end()
    elif bookmark.starts_over:
        say("the journal was replaced; reading it from the beginning")

    def moved(entry: Entry) -> None:
        bookmark.done(entry)
        bookmark.save_if_due()

    return AllJobs(
        begin=None if options.replay else bookmark.offset,
        handled=moved,
        last_seen=lambda job_id: 0 if options.replay else _received(log, job_id),
    )


def _subscribe(listener: Subscriber, registry: Registry, job: Job, options: Options, log: AuditLog) -> None:
    from mam.bus.messages import default_prefix, events_topic

    topic = events_topic(job.topic_prefix) or f"{default_prefix(job.job_id)}/events"
    listener.add(_subscription(registry, job, options, log), topic)


def _subscription(registry: Registry, job: Job, options: Options, log: AuditLog) -> Subscription:
    from mam.events.subscriber import Subscription

    seen = 0 if options.replay else min(_received(log, job.job_id), job.last_seq)
    if seen and not options.json:
        say(f"{job.job_id[:ID_PREFIX_SHOWN]}: events up to {seen} were printed before; --replay prints them again")
    idle = options.idle_timeout
    return Subscription(
        job.job_id,
        now=time.monotonic(),
        token=registry.store.secrets(job.job_id).get("auth_token"),
        seen=seen,
        timeout=job.timeout_sec if options.timeout is None else options.timeout,
        idle_timeout=job.idle_timeout_sec if idle is None else idle,
        # A job that has not started sends no events, so only an explicit --idle-timeout applies to it.
        idle_begins=idle is not None or job.status not in (PENDING, WAITING),
    )


def _received(log: AuditLog, job_id: str) -> int:
    """The last event that the audit log has as received, so that the position survives a restart."""
    from mam.audit.log import iter_lines

    numbers = [
        line["payload"]["seq"]
        for line in iter_lines(log.logs_dir, job_id)
        if line.get("event") == "received" and isinstance(line.get("payload"), dict)
        and isinstance(line["payload"].get("seq"), int)
    ]  # fmt: skip
    return max(numbers, default=0)


def _broker(registry: Registry, jobs: list[Job], config: Config, options: Options) -> Broker | None:
    from mam.bus.delivery import broker_for, require_client
    from mam.bus.settings import configured_broker

    if jobs:
        found = [broker_for(registry.store, job, config, insecure=options.insecure_broker) for job in jobs]
        if len({None if broker is None else broker.address for broker in found}) > 1:
            say("these jobs have different brokers; following the store instead")
            return None
        broker = found[0]
    else:
        broker = configured_broker(config.broker, insecure=options.insecure_broker)
    if broker is None:
        return None
    broker.check_safe()
    require_client()
    if broker.insecure and not broker.tls and not broker.is_local:
        say(f"the connection to {broker.address} has no TLS: others can read the events; mam verifies what it prints")
    return broker


class _EventPrinter:
    """Prints each event once and adds a line to the audit log."""

    def __init__(self, registry: Registry, log: AuditLog, *, as_json: bool) -> None:
        self._clock = registry.store.clock
        self._log = log
        self._as_json = as_json

    def __call__(self, event: dict[str, Any]) -> None:
        if self._as_json:
            print_json_line(event)
        else:
            job_id, detail = event["job_id"], event["detail"]
            print_row(
                job_id[:ID_PREFIX_SHOWN] if stdout_is_terminal() else job_id, str(event["seq"]), event["event"], detail
            )
        sys.stdout.flush()
        now = self._clock.now().second
        line = {"timestamp": now, "event": "received", "job_id": event["job_id"], "payload": event}
        self._log.append_local(event["job_id"], line)


def _outcome(listener: Subscriber, options: Options) -> int:
    for job_id, ran_out in listener.expired.items():
        if ran_out != "gone":
            say(f"{job_id[:ID_PREFIX_SHOWN]} {ran_out} within its timeout")
    if any(ran_out == "gone" for ran_out in listener.expired.values()):
        return UnknownJob.exit_code
    if listener.expired or options.all:
        return TimedOut.exit_code
    if "error" in listener.statuses.values():
        return ENDED_IN_ERROR
    return WAS_CANCELLED if "cancelled" in listener.statuses.values() else 0
