"""Following the events of jobs until the jobs have ended, for `mam subscribe` and job_subscriber.py."""

from __future__ import annotations

import sys
import time

from mam.audit.sync import AuditLog
from mam.bus.subscriber import AllJobs, Subscriber
from mam.cli.render.streams import say
from mam.config.settings import load_config
from mam.events.subscriber import Subscription
from mam.events.topic import default_prefix, events_topic
from mam.jobs.input_rules import ID_PREFIX_SHOWN
from mam.location.stores import locate, open_located
from mam.stores.consumer import Consumer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mam.bus.settings import Broker
    from mam.cli.args.parser import Options
    from mam.config.settings import Config
    from mam.jobs.record import Job
    from mam.registry import Registry
    from mam.stores.port import Entry

    Print = Callable[[dict[str, Any]], None]


def open_following(options: Options) -> EventFollowing:
    config = load_config()
    located = locate(options.store, options.registry_dir, config)
    return EventFollowing(options, config, open_located(located, config), AuditLog(located.logs_dir))


class EventFollowing:
    """`add` the jobs (or `add_all`), then `run`. `statuses` and `expired` then contain the outcome of each job."""

    def __init__(self, options: Options, config: Config, registry: Registry, log: AuditLog) -> None:
        from mam.bus.saved_position import subscribe_consumer

        self.registry = registry
        self.statuses: dict[str, str] = {}
        self.expired: dict[str, str] = {}
        self._options, self._config, self._log = options, config, log
        self._jobs: list[tuple[Job, bool]] = []
        self._all_jobs: AllJobs | None = None
        self._bookmark: Consumer = subscribe_consumer(registry.store, log.logs_dir)

    def add(self, job: Job, *, idle_from_start: bool) -> None:
        """`idle_from_start`: the idle timeout counts also before the first event."""
        self._jobs.append((job, idle_from_start))

    def add_all(self, *, replay: bool, from_now: bool) -> None:
        """Every job of the store, from where the last one ended."""
        bookmark = self._bookmark
        bookmark.load()
        if bookmark.is_new or from_now:
            bookmark.skip_to_end()
        elif bookmark.is_lost:
            say("lost: the journal was summarised since the last run; reading it from the beginning")
        elif bookmark.starts_over:
            say("the journal was replaced; reading it from the beginning")

        def moved(entry: Entry) -> None:
            bookmark.done(entry)
            bookmark.save_if_due()

        self._all_jobs = AllJobs(
            begin=None if replay else bookmark.offset,
            handled=moved,
            last_seen=lambda job_id: 0 if replay else self._received(job_id),
        )

    def run(self, print_event: Print, *, replay: bool = False) -> None:
        timeout = self._options.timeout
        listener = Subscriber(self.registry, self._and_log(print_event), say, all_jobs=self._all_jobs)
        for job, idle_from_start in self._jobs:
            topic = events_topic(job.topic_prefix) or f"{default_prefix(job.job_id)}/events"
            listener.add(self._subscription(job, replay=replay, idle_from_start=idle_from_start), topic)
        listener.ends = time.monotonic() + timeout if self._all_jobs is not None and timeout else None
        broker = self._broker()
        try:
            if broker is None:
                listener.run_with_store()
            else:
                listener.run_with_broker(broker)
        finally:
            self._bookmark.save()
        self.statuses, self.expired = listener.statuses, listener.expired

    def _and_log(self, print_event: Print) -> Print:
        def emit(event: dict[str, Any]) -> None:
            print_event(event)
            sys.stdout.flush()
            now = self.registry.store.clock.now().second
            line = {"timestamp": now, "event": "received", "job_id": event["job_id"], "payload": event}
            self._log.append_local(event["job_id"], line)

        return emit

    def _subscription(self, job: Job, *, replay: bool, idle_from_start: bool) -> Subscription:
        options = self._options
        seen = 0 if replay else min(self._received(job.job_id), job.last_seq)
        if seen and not options.json:
            say(f"{job.job_id[:ID_PREFIX_SHOWN]}: events up to {seen} were printed before; --replay prints them again")
        idle = options.idle_timeout
        return Subscription(
            job.job_id,
            now=time.monotonic(),
            token=self.registry.store.secrets(job.job_id).get("auth_token"),
            seen=seen,
            timeout=job.timeout_sec if options.timeout is None else options.timeout,
            idle_timeout=job.idle_timeout_sec if idle is None else idle,
            idle_begins=idle is not None or idle_from_start,
        )

    def _received(self, job_id: str) -> int:
        """The last event that the audit log has as received, so that the position survives a restart."""
        from mam.audit.log import iter_lines

        numbers = [
            line["payload"]["seq"]
            for line in iter_lines(self._log.logs_dir, job_id)
            if line.get("event") == "received" and isinstance(line.get("payload"), dict)
            and isinstance(line["payload"].get("seq"), int)
        ]  # fmt: skip
        return max(numbers, default=0)

    def _broker(self) -> Broker | None:
        from mam.bus.delivery import broker_for, require_client
        from mam.bus.settings import configured_broker

        insecure = self._options.insecure_broker
        if self._jobs:
            found = [broker_for(self.registry.store, job, self._config, insecure=insecure) for job, _idle in self._jobs]
            if len({None if broker is None else broker.address for broker in found}) > 1:
                say("these jobs have different brokers; following the store instead")
                return None
            broker = found[0]
        else:
            broker = configured_broker(self._config.broker, insecure=insecure)
        if broker is None:
            return None
        broker.check_safe()
        require_client()
        if broker.insecure and not broker.tls and not broker.is_local:
            say(f"{broker.address} has no TLS: others can read the events; mam verifies what it prints")
        return broker
