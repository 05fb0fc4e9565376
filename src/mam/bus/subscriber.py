"""Emit the events of jobs until the jobs have ended, woken by the broker or by the store alone.

An event is emitted from the registry, whatever the broker sends. While the broker is away, the subscriber follows the
journal instead and needs no restart.
"""

from __future__ import annotations

import time

from mam.errors import BrokerUnavailable
from mam.events.subscriber import Subscription
from mam.jobs.input_rules import is_job_id
from mam.stores.common import event_in_line
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mam.bus.connection import Connection
    from mam.bus.settings import Broker
    from mam.registry import Registry
    from mam.stores.port import Entry

    Emit = Callable[[dict[str, Any]], None]

LONGEST_SLEEP_SECONDS = 30.0
"""The longest sleep: a waiting subscriber also sweeps jobs that are due, and a message may have been lost."""

CONNECT_SECONDS = (3.0, 10.0)
"""How long connecting may take, at first and at most: no events arrive meanwhile."""

BACKOFF_SECONDS = (0.25, 30.0)
RECHECK_SECONDS = 0.05
"""After a message that the registry does not know, the registry is read at most this often."""

MAX_WARNINGS = 10


class AllJobs(Frozen):
    """Options for a subscriber of all jobs."""

    begin: str | None
    """The offset in the journal; None for its beginning."""
    handled: Callable[[Entry], None]
    """Called with each handled entry."""
    last_seen: Callable[[str], int]
    """The last seq of a job that was ever printed here."""


class Subscriber:
    """`add` the subscriptions, then run. Emits each event once, in the order of its seq."""

    def __init__(
        self, registry: Registry, emit: Emit, report: Callable[[str], None], *, all_jobs: AllJobs | None = None
    ) -> None:
        self._registry = registry
        self._store = registry.store
        self._emit = emit
        self._report = report
        self._all_jobs = all_jobs
        self._subscriptions: dict[str, Subscription] = {}
        self._topics: dict[str, str] = {}
        self._offset = self._store.end_offset() if all_jobs is None else all_jobs.begin or ""
        self._dropped = 0
        self._recheck_at: float | None = None
        """When to read the registry again after messages that it did not know."""
        self._registry_first = True
        """Whether the registry had new events when a message last caused a read."""
        self.statuses: dict[str, str] = {}
        """The final status of each ended job."""
        self.expired: dict[str, str] = {}
        """Which timeout expired, for jobs that have not ended."""
        self.ends: float | None = None
        """When to stop following all jobs."""

    def add(self, subscription: Subscription, topic: str) -> None:
        self._subscriptions[subscription.job_id] = subscription
        self._topics[topic] = subscription.job_id

    # -- the two ways ------------------------------------------------------------------------------------------------

    def run_with_store(self) -> None:
        self._begin()
        while self._is_open():
            self._registry.sweep()
            if not self._catch_up() and self._is_open():
                self._store.wait(self._offset, self._sleep_seconds())

    def run_with_broker(self, broker: Broker) -> None:
        self._begin()
        delay, away = BACKOFF_SECONDS[0], False
        while self._is_open():
            try:
                connection = self._connected(broker, _connect_timeout(delay) if away else CONNECT_SECONDS[0])
                if away:
                    self._report(f"the broker {broker.address} is available again")
                delay, away = BACKOFF_SECONDS[0], False
                with connection:
                    self._listen(connection)
            except BrokerUnavailable as gone:
                if not away:
                    self._report(f"{gone} Following the store meanwhile.")
                away = True
                self._follow_store(delay)
                delay = min(delay * 2, BACKOFF_SECONDS[1])

    def _connected(self, broker: Broker, seconds: float) -> Connection:
        from mam.bus.connection import Connection

        now, deadline = time.monotonic(), self._deadline()
        ends = now + seconds if deadline is None else min(now + seconds, deadline)
        connection = Connection(broker, "subscribe", ends - now, self._on_message)
        try:
            connection.subscribe(self._filters(), max(0.0, ends - time.monotonic()))
        except BrokerUnavailable:
            connection.close()
            raise
        return connection

    def _filters(self) -> list[str]:
        from mam.events.topic import default_prefix

        return [f"{default_prefix('+')}/events"] if self._all_jobs is not None else list(self._topics)

    def _listen(self, connection: Connection) -> None:
        # The subscription is active: read what was stored before; later events arrive as messages.
        sweep_at = 0.0
        while self._is_open():
            now = time.monotonic()
            if now >= sweep_at or (self._recheck_at is not None and now >= self._recheck_at):
                self._recheck_at = None
                self._sweep_and_catch_up()
                sweep_at = time.monotonic() + self._sleep_seconds()
                continue
            known = [sweep_at, self._recheck_at, self._deadline()]
            connection.poll(min(moment for moment in known if moment is not None) - now)

    def _follow_store(self, seconds: float) -> None:
        ends = time.monotonic() + seconds
        while self._is_open() and (left := ends - time.monotonic()) > 0:
            self._sweep_and_catch_up()
            if self._is_open():
                self._store.wait(self._offset, min(left, self._sleep_seconds()))

    def _sweep_and_catch_up(self) -> None:
        self._registry.sweep()
        self._catch_up()

    # -- what comes --------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Emit what the registry already has."""
        for subscription in list(self._subscriptions.values()):
            self._emit_all(subscription, subscription.read(self._store.events(subscription.job_id), time.monotonic()))

    def _on_message(self, topic: str, raw: bytes) -> None:
        subscription = self._subscription(topic)
        if subscription is None:
            return
        if not raw:
            return  # a retained message was cleared
        if self._registry_first and self._recheck_at is None and not subscription.is_signed:
            # Only the registry is authoritative, so read it before checking the message.
            self._registry_first = self._catch_up()
        verdict = subscription.receive(raw, time.monotonic())
        if verdict.dropped is not None:
            self._warn(topic, verdict.dropped)
        if verdict.accepted is not None:
            self._emit_all(subscription, [verdict.accepted])
        elif verdict.read_upto is not None:
            self._check_registry(subscription, topic, verdict.read_upto)
        else:
            self._emit_all(subscription, [])

    def _subscription(self, topic: str) -> Subscription | None:
        found = self._subscriptions.get(self._topics.get(topic, ""))
        if found is not None or self._all_jobs is None or self._recheck_at is not None:
            return found
        self._catch_up()  # the job may have been registered since
        found = self._subscriptions.get(self._topics.get(topic, ""))
        if found is None and not self._knows(topic):
            self._warn(topic, "no such job in this registry")
            self._recheck_at = time.monotonic() + RECHECK_SECONDS
        return found

    def _knows(self, topic: str) -> bool:
        """Whether the job is in this registry but has no new events, such as one that ended long ago."""
        job_id = topic.removesuffix("/events").rpartition("/")[2]
        return is_job_id(job_id) and job_id in self._store.ids_with_prefix(job_id, 1)

    def _check_registry(self, subscription: Subscription, topic: str, seq: int) -> None:
        if self._recheck_at is not None:
            return  # it will be checked soon, with the others
        self._catch_up()
        self._registry_first = subscription.seen >= seq
        if not self._registry_first:
            self._warn(topic, f"the registry has no event {seq} of this job")
            self._recheck_at = time.monotonic() + RECHECK_SECONDS

    def _catch_up(self) -> bool:
        """Handle all entries behind the offset; returns whether there were any."""
        handled = False
        for entry in self._store.entries(self._offset or None):
            self._offset = entry.offset
            handled = True
            self._handle_entry(entry)
            if self._all_jobs is not None:
                self._all_jobs.handled(entry)
        return handled

    def _handle_entry(self, entry: Entry) -> None:
        events = [event for event in map(event_in_line, entry.lines) if event is not None]
        subscription = self._subscriptions.get(entry.job_id)
        if subscription is None and self._all_jobs is not None and events:
            subscription = self._new_job(entry.job_id, events[0]["seq"] - 1, self._all_jobs)
        if subscription is None:
            return
        self._emit_all(subscription, subscription.read(events, time.monotonic()))
        if entry.fields is None and self._all_jobs is None:
            self._report(f"{entry.job_id} is gone")
            self.expired[entry.job_id] = "gone"
            self._forget(subscription)

    def _new_job(self, job_id: str, seen: int, all_jobs: AllJobs) -> Subscription:
        """The last seq may be higher than seen here, because an earlier subscriber printed it."""
        from mam.events.topic import default_prefix

        token = self._store.secrets(job_id).get("auth_token")
        seen = max(seen, all_jobs.last_seen(job_id))
        subscription = Subscription(job_id, now=time.monotonic(), token=token, seen=seen)
        self.add(subscription, f"{default_prefix(job_id)}/events")
        return subscription

    def _emit_all(self, subscription: Subscription, events: list[dict[str, Any]]) -> None:
        for event in events:
            self._emit(event)
        if subscription.ended is not None:
            self.statuses[subscription.job_id] = subscription.ended
            self._forget(subscription)

    def _forget(self, subscription: Subscription) -> None:
        self._subscriptions.pop(subscription.job_id, None)

    def _warn(self, topic: str, why: str) -> None:
        """Report the first warnings and only count the rest."""
        self._dropped += 1
        if self._dropped <= MAX_WARNINGS:
            more = "; further ones are not reported" if self._dropped == MAX_WARNINGS else ""
            self._report(f"dropped a message on {topic[:200]}: {why}{more}")

    # -- time --------------------------------------------------------------------------------------------------------

    def _is_open(self) -> bool:
        now = time.monotonic()
        for subscription in list(self._subscriptions.values()):
            ran_out = subscription.expired(now)
            if ran_out is not None:
                self.expired[subscription.job_id] = ran_out
                self._forget(subscription)
        return not self._ran_out(now) if self._all_jobs is not None else bool(self._subscriptions)

    def _ran_out(self, now: float) -> bool:
        return self.ends is not None and now >= self.ends

    def _deadline(self) -> float | None:
        deadlines = [subscription.deadline() for subscription in self._subscriptions.values()]
        known = [moment for moment in (*deadlines, self.ends) if moment is not None]
        return min(known) if known else None

    def _sleep_seconds(self) -> float:
        due, deadline = self._store.due_in(), self._deadline()
        naps = [LONGEST_SLEEP_SECONDS, LONGEST_SLEEP_SECONDS if due is None else due + 0.001]
        if deadline is not None:
            naps.append(deadline - time.monotonic())
        return max(0.0, min(naps))


def _connect_timeout(delay: float) -> float:
    """For a retry: about as long as the store was followed before."""
    return max(1.0, min(delay, CONNECT_SECONDS[1]))
