"""Follow the journal and send its events to one broker, in order, each until the broker acknowledges it.

    read an entry -> send its events -> the broker acknowledges -> the position moves behind the entry

The relay is a consumer of the journal (mam.stores.consumer). After a kill the next relay starts at the saved position:
it sends some events twice and omits none. A lock lets one process send at a time; another takes over when it ends.
"""

from __future__ import annotations

import time
from collections import deque

from mam.bus.connection import Connection
from mam.bus.messages import MessageBuilder
from mam.bus.relay_state import relay_consumer, relay_locks
from mam.errors import BrokerUnavailable, MamError
from mam.stores.consumer import take_snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mam.bus.messages import Message
    from mam.bus.settings import Broker
    from mam.stores.port import Entry, Store

CONNECT_SECONDS, LAST_SECONDS = 10.0, 1.5
ANSWER_SECONDS = 10.0
"""How long a broker may take to acknowledge a message before the connection counts as broken."""

STANDBY_SECONDS = 1.0
LONGEST_SLEEP_SECONDS = 10.0
"""The longest sleep between two polls, which keep the connection alive."""

BACKOFF_SECONDS = (0.25, 30.0)


class Relay:
    """One store and one broker. Not thread-safe."""

    def __init__(self, store: Store, broker: Broker, report: Callable[[str], None]) -> None:
        broker.check_safe()
        self._store = store
        self._broker = broker
        self._report = report
        self._builder = MessageBuilder(store, broker, report)
        self._consumer = relay_consumer(store, broker)
        sender = relay_locks(store, broker)
        sender.prepare()
        self._send_lock, self._resident_lock = sender.send_lock(), sender.resident_lock()
        self._last_problem: str | None = None
        self._delay = BACKOFF_SECONDS[0]

    # -- once --------------------------------------------------------------------------------------------------------

    def deliver(self, seconds: float) -> None:
        """Send everything that is in the journal now. Raises BrokerUnavailable if that takes too long."""
        ends = time.monotonic() + seconds
        if not self._send_lock.take(seconds):
            raise self._too_slow()
        try:
            self._load()
            if not (self._consumer.is_lost or self._has_messages()):
                return
            with Connection(self._broker, "publish", _left(ends)) as connection:
                self._send_new(connection, lambda: _left(ends))
        finally:
            self._save()
            self._send_lock.release()

    def _has_messages(self) -> bool:
        """Whether there is an event to send. The position moves past entries without one."""
        for entry in self._consumer.entries():
            if any(True for _ in self._builder.messages(entry)):
                return True
            self._consumer.done(entry)
        return False

    # -- for ever ----------------------------------------------------------------------------------------------------

    def run(self, stopping: Callable[[], bool], wait: Callable[[str | None, float], bool]) -> None:
        """Send until `stopping()` is true. `wait` sleeps until the journal may have more behind an offset; False if
        nothing came."""
        last = False
        try:
            while not last:
                last = stopping()  # one more pass sends what was stored before the stop
                try:
                    if not self._acquire():
                        wait(None, STANDBY_SECONDS)
                        continue
                    with Connection(self._broker, "relay", LAST_SECONDS if last else CONNECT_SECONDS) as connection:
                        self._serve(connection, stopping, wait)
                        return
                except MamError as error:
                    self._report_problem(error)
                    self._save()
                    wait(None, self._delay * (0.5 + self._store.clock.chance() / 2))
                    self._delay = min(self._delay * 2, BACKOFF_SECONDS[1])
        finally:
            self._release()

    def _acquire(self) -> bool:
        if not self._send_lock.take():
            return False
        if self._resident_lock.take(STANDBY_SECONDS):
            self._load()
            return True
        self._send_lock.release()
        return False

    def _serve(
        self, connection: Connection, stopping: Callable[[], bool], wait: Callable[[str | None, float], bool]
    ) -> None:
        last = False
        while not last:
            last = stopping()
            if last:
                # From here on other commands deliver their own events. Events of commands that relied on this relay are
                # already stored.
                self._resident_lock.release()
            begin = self._consumer.offset or self._store.end_offset()
            self._send_new(connection, lambda: ANSWER_SECONDS)
            self._report_recovery()
            due = self._consumer.due_in
            if not last and not wait(self._consumer.offset or begin, LONGEST_SLEEP_SECONDS if due is None else due):
                connection.poll(0)
            self._save_if_due()

    def _report_recovery(self) -> None:
        """Called after the broker acknowledged events: only then is it available again."""
        self._delay = BACKOFF_SECONDS[0]
        if self._last_problem is not None:
            self._report(f"the broker {self._broker.address} is available again")
            self._last_problem = None

    def _report_problem(self, error: MamError) -> None:
        """Report each new problem once."""
        if str(error) != self._last_problem:
            self._last_problem = str(error)
            self._report(f"{error} Events wait in the journal; trying again.")

    def _release(self) -> None:
        self._save()
        self._resident_lock.release()
        self._send_lock.release()

    # -- sending -----------------------------------------------------------------------------------------------------

    def _send_new(self, connection: Connection, timeout: Callable[[], float]) -> None:
        """Send all entries behind the position, as many at once as the broker allows."""
        if self._consumer.is_lost:
            self._send_snapshot(connection, timeout)
        in_flight: deque[tuple[Entry, list[int]]] = deque()
        unacknowledged = connection.unacknowledged
        for entry in self._consumer.entries():
            in_flight.append((entry, self._send_entry(connection, entry, timeout)))
            self._confirm(in_flight, unacknowledged)
        while in_flight:
            self._await_acks(connection, lambda: not unacknowledged.intersection(in_flight[0][1]), timeout)
            self._confirm(in_flight, unacknowledged)

    def _send_snapshot(self, connection: Connection, timeout: Callable[[], float]) -> None:
        """What clears the jobs that were archived since the position, and the last event of each other job."""
        snapshot = take_snapshot(self._store)
        for entry in self._store.entries(str(self._consumer.lost_at)):
            if entry.fields is None:
                self._send_entry(connection, entry, timeout)
        for job in snapshot.jobs:
            self._send(connection, self._builder.newest(job), timeout)
        self._await_acks(connection, lambda: not connection.unacknowledged, timeout)
        self._consumer.go_on_after(snapshot.offset)

    def _send_entry(self, connection: Connection, entry: Entry, timeout: Callable[[], float]) -> list[int]:
        """Send the messages of one entry and return their numbers."""
        return self._send(connection, self._builder.messages(entry), timeout)

    def _send(self, connection: Connection, messages: Iterable[Message], timeout: Callable[[], float]) -> list[int]:
        numbers = []
        for message in messages:
            self._await_acks(connection, lambda: len(connection.unacknowledged) < connection.window, timeout)
            numbers.append(connection.send(message.topic, message.payload, retain=message.retain))
        return numbers

    def _await_acks(self, connection: Connection, enough: Callable[[], bool], timeout: Callable[[], float]) -> None:
        """Read acknowledgements until `enough()`; each may take `timeout()` seconds."""
        while not enough():
            before, ends = len(connection.unacknowledged), time.monotonic() + timeout()
            while len(connection.unacknowledged) == before:
                if time.monotonic() >= ends:
                    raise self._too_slow()
                connection.poll(_left(ends))

    def _confirm(self, in_flight: deque[tuple[Entry, list[int]]], unacknowledged: set[int]) -> None:
        """Move the position behind the acknowledged entries, in the order of the journal."""
        while in_flight and unacknowledged.isdisjoint(in_flight[0][1]):
            entry, numbers = in_flight.popleft()
            self._consumer.done(entry, len(numbers))
        self._save_if_due()

    def _too_slow(self) -> BrokerUnavailable:
        return BrokerUnavailable(broker=self._broker.address, problem="did not acknowledge all events in time")

    # -- the position ------------------------------------------------------------------------------------------------

    def _load(self) -> None:
        self._consumer.load()
        if self._consumer.is_lost:
            words = "no relay has sent events for longer than the retention, and the journal was summarised meanwhile"
            self._report(f"lost: {words}; sending the last event of each job, then what comes next")
        elif self._consumer.starts_over:
            self._report("the journal is a new one; sending it from its beginning")
            self._save()

    def _save_if_due(self) -> None:
        if self._consumer.due_in == 0:
            self._save()

    def _save(self) -> None:
        try:
            self._consumer.save()
        except MamError as error:
            self._report(f"the position could not be saved, so some events may be sent again: {error}")


def _left(ends: float) -> float:
    return max(0.0, ends - time.monotonic())
