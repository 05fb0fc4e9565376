"""Follows the journal and sends its events to one broker: in order, each until the broker has taken it.

    read an entry -> send its events -> the broker answers -> the place moves behind the entry

Killed anywhere, the next one begins at the place: what was not answered is sent again, and nothing is left out. One at
a time sends, by a lock; whoever waits for the lock takes over when its holder ends.
"""

from __future__ import annotations

import time
from collections import deque

from mam.audit.cursor import BEGINNING, position_behind
from mam.bus.connection import Connection
from mam.bus.messages import Post
from mam.bus.place import Sent, place_of, still_holds
from mam.errors import BrokerUnavailable, MamError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mam.audit.cursor import Position
    from mam.bus.settings import Broker
    from mam.stores.port import Entry, Store

CONNECT_SECONDS, LAST_SECONDS = 10.0, 1.5
ANSWER_SECONDS = 10.0
"""How long a broker may take for a message before the connection counts as broken."""

SAVE_SECONDS, QUIET_SECONDS = 0.25, 0.05
"""How old the mark of what was sent may be while more comes, and how soon it is written when nothing does."""

STANDBY_SECONDS = 1.0
NAP_SECONDS = 10.0
"""Longest sleep between two looks at the connection, which has to be kept alive."""

BACKOFF_SECONDS = (0.25, 30.0)


class Relay:
    """One store, one broker. Not for two threads at once."""

    def __init__(self, store: Store, broker: Broker, say: Callable[[str], None]) -> None:
        broker.check_safe()
        self._store = store
        self._broker = broker
        self._say = say
        self._post = Post(store, broker, say)
        self._connection: Connection | None = None
        self._held: tuple[Entry, list[int]] | None = None
        """The entry whose messages the connection holds back until it is durable, and their numbers."""
        self.place = place_of(store, broker)
        self.place.make()
        self._sending, self._staying = self.place.sending(), self.place.staying()
        self._at: Position = BEGINNING
        self._journal_id = ""
        self._count = 0
        self._last: tuple[Entry, str | None] | None = None
        """The entry behind which the place is, and the place before it; its mark is reckoned when it is saved."""
        self._saved_at = 0.0
        self._told: str | None = None
        self._delay = BACKOFF_SECONDS[0]

    # -- once --------------------------------------------------------------------------------------------------------

    def deliver(self, seconds: float) -> None:
        """Everything that is in the journal now. BrokerUnavailable when that does not work in time."""
        ends = time.monotonic() + seconds
        if not self._sending.take(seconds):
            raise self._too_slow()
        try:
            self._load()
            if not self._has_something():
                return
            with Connection(self._broker, "publish", _left(ends)) as connection:
                self._send_new(connection, lambda: _left(ends))
        finally:
            self._save()
            self._sending.release()

    def _has_something(self) -> bool:
        """Whether anything behind the place is to be sent; what is not is passed by on the way."""
        for entry in self._entries_behind():
            if any(True for _ in self._post.messages(entry)):
                return True
            self._advance(entry)
        return False

    # -- for ever ----------------------------------------------------------------------------------------------------

    def run(self, stopping: Callable[[], bool], wait: Callable[[str | None, float], bool]) -> None:
        """Until `stopping`; `wait` sleeps until there may be something behind a place of the journal, or says no."""
        last = False
        try:
            while not last:
                last = stopping()  # one more look: what was stored before it was stopped shall still go out
                try:
                    if not self._lead():
                        wait(None, STANDBY_SECONDS)
                        continue
                    with Connection(self._broker, "relay", LAST_SECONDS if last else CONNECT_SECONDS) as connection:
                        self._connection, self._held = connection, None
                        self._serve(connection, stopping, wait)
                        return
                except _TakenBack:
                    self._save()
                except MamError as away:
                    self._complain(away)
                    self._save()
                    wait(None, self._delay * (0.5 + self._store.clock.chance() / 2))
                    self._delay = min(self._delay * 2, BACKOFF_SECONDS[1])
                finally:
                    self._connection = None
        finally:
            self._resign()

    def _lead(self) -> bool:
        if not self._sending.take():
            return False
        if self._staying.take(STANDBY_SECONDS):
            self._load()
            return True
        self._sending.release()
        return False

    def _serve(
        self, connection: Connection, stopping: Callable[[], bool], wait: Callable[[str | None, float], bool]
    ) -> None:
        last = False
        while not last:
            last = stopping()
            if last:
                # From here on others deliver by themselves; whoever relied on us before has stored its event already.
                self._staying.release()
            begin = self._place() or self._store.end()
            self._send_new(connection, lambda: ANSWER_SECONDS)
            self._be_content()
            # The mark can wait for a quiet moment: the next event may be there already.
            if not last and not wait(self._place() or begin, QUIET_SECONDS if self._last is not None else NAP_SECONDS):
                self._save()
                connection.turn(0)

    def prepare(self, entry: Entry) -> None:
        """For `Store.coming`: makes the messages of the next entry while its writer waits for the disk, so that they
        only have to be let go."""
        connection = self._connection
        if connection is None or self._held is not None:
            return
        messages = self._post.early(entry)
        if 0 < len(messages) <= connection.window:
            self._held = (entry, [connection.hold(one.topic, one.payload, retain=one.retain) for one in messages])

    def _be_content(self) -> None:
        """It has taken what there was: a broker that lets us in and then says nothing is not there again."""
        self._delay = BACKOFF_SECONDS[0]
        if self._told is not None:
            self._say(f"the broker {self._broker.address} is there again")
            self._told = None

    def _complain(self, away: MamError) -> None:
        """Once for each new problem."""
        if str(away) != self._told:
            self._told = str(away)
            self._say(f"{away} Events wait in the journal; trying again.")

    def _resign(self) -> None:
        self._save()
        self._staying.release()
        self._sending.release()

    # -- sending -----------------------------------------------------------------------------------------------------

    def _send_new(self, connection: Connection, patience: Callable[[], float]) -> None:
        """All entries behind the place, as many at once as the broker takes."""
        on_their_way: deque[tuple[Entry, list[int]]] = deque()
        open_numbers = connection.unanswered
        for entry in self._entries_behind():
            on_their_way.append((entry, self._sent(connection, entry, patience)))
            self._move(on_their_way, open_numbers)
        while on_their_way:
            self._answered(connection, lambda: not open_numbers.intersection(on_their_way[0][1]), patience)
            self._move(on_their_way, open_numbers)

    def _sent(self, connection: Connection, entry: Entry, patience: Callable[[], float]) -> list[int]:
        """The numbers of its messages, which are on their way."""
        held, self._held = self._held, None
        if held is not None:
            if held[0] != entry:
                raise _TakenBack
            connection.let_go()
            return held[1]
        numbers = []
        for message in self._post.messages(entry):
            self._answered(connection, lambda: len(connection.unanswered) < connection.window, patience)
            numbers.append(connection.send(message.topic, message.payload, retain=message.retain))
        return numbers

    def _answered(self, connection: Connection, enough: Callable[[], bool], patience: Callable[[], float]) -> None:
        """Reads the broker's answers until it is enough; each may take as long as there is patience."""
        while not enough():
            before, ends = len(connection.unanswered), time.monotonic() + patience()
            while len(connection.unanswered) == before:
                if time.monotonic() >= ends:
                    raise self._too_slow()
                connection.turn(_left(ends))

    def _move(self, on_their_way: deque[tuple[Entry, list[int]]], open_numbers: set[int]) -> None:
        """Behind everything that was answered, in the order of the journal."""
        while on_their_way and open_numbers.isdisjoint(on_their_way[0][1]):
            entry, numbers = on_their_way.popleft()
            self._count += len(numbers)
            self._advance(entry)
        if time.monotonic() - self._saved_at > SAVE_SECONDS:
            self._save()

    def _too_slow(self) -> BrokerUnavailable:
        return BrokerUnavailable(broker=self._broker.address, problem="has not taken everything in time")

    # -- the place ---------------------------------------------------------------------------------------------------

    def _place(self) -> str | None:
        return self._last[0].cursor if self._last is not None else self._at.place

    def _entries_behind(self) -> Iterator[Entry]:
        return self._store.entries(self._place())

    def _advance(self, entry: Entry) -> None:
        self._last = (entry, self._place())

    def _load(self) -> None:
        """Where the last one got to; the beginning if the journal is not the one in which that was a place."""
        self._last, self._saved_at = None, time.monotonic()
        sent = self.place.load()
        self._journal_id = self._store.journal_id
        self._at, self._count = (BEGINNING, 0) if sent is None else (sent.at, sent.count)
        if sent is not None and not still_holds(self._store, sent):
            self._say("the journal is not the one that was sent before; it is sent from its beginning")
            self._at = BEGINNING

    def _save(self) -> None:
        self._saved_at = time.monotonic()
        if self._last is None:
            return
        entry, before = self._last
        self._at, self._last = position_behind(entry, before), None
        sent = Sent(broker=self._broker.address, journal_id=self._journal_id, at=self._at, count=self._count)
        try:
            self.place.save(sent)
        except (OSError, MamError) as error:
            # What was sent was sent. Whoever comes next sends it again.
            why = (error.strerror or error) if isinstance(error, OSError) else error
            self._say(f"how far the events were sent could not be kept: {why} ({self.place.directory})")


class _TakenBack(Exception):
    """Messages are held back for an entry that its writer could not make durable: only a new connection lacks them."""


def _left(ends: float) -> float:
    return max(0.0, ends - time.monotonic())
