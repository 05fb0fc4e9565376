"""What the thread of the doors does with those who come: let them in, read, carry out, answer, send them away.

Nothing here waits for a client. All of it runs in that one thread, so nothing is locked.
"""

from __future__ import annotations

import os
import time
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector

from mam.door_client import peer_uid
from mam.errors import MamError, StoreUnavailable
from mam.work.door.child_waits import Wait
from mam.work.door.connection import Visit
from mam.work.door.handlers import answer, is_sign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from socket import socket
    from typing import Any

    from mam.work.door.child_waits import Ear
    from mam.work.door.server import Door

VISITS = 32
"""Connections that one door serves at once."""

QUEUE = 128
"""As many more wait in the kernel; who comes then is refused by it, and tries again."""

OWED_LIMIT = 1 << 24
"""Bytes of answers that the clients of one door may leave unread before it answers no more."""

LONG_SECONDS = 0.2
"""Longer than any request takes, unless the store is slow or locked."""

BREATH_SECONDS = 0.2
"""Pause after the system refused a connection: it is short of something, and asking again at once helps nobody."""


class Reception:
    """All doors that are open, and who stands in them."""

    def __init__(self, ear: Ear) -> None:
        self.selector = DefaultSelector()
        self._doors: set[Door] = set()
        self._parked: set[Visit] = set()
        self._ear = ear

    # -- doors ---------------------------------------------------------------------------------------------------

    def open(self, door: Door) -> None:
        self._doors.add(door)
        self._listen(door)

    def shut(self, door: Door) -> None:
        """Who has been answered may still read; everybody else goes."""
        self._stop_listening(door)
        if door.listener is not None:
            door.listener.close()
            door.listener = None
        door.listens_again_at = None
        for visit in [visit for visit in door.visits if not visit.owed]:
            self._leave(visit)
        if not door.visits:
            self._doors.discard(door)

    def shut_all(self) -> None:
        for door in list(self._doors):
            self.shut(door)

    def is_empty(self) -> bool:
        return not self._doors

    def drop_all(self) -> None:
        for door in list(self._doors):
            for visit in list(door.visits):
                self._leave(visit)
        self.selector.close()

    # -- time ----------------------------------------------------------------------------------------------------

    def next_end(self) -> float | None:
        """When something has to be done that no client asks for."""
        ends = [visit.wait.ends if visit.wait else visit.ends for door in self._doors for visit in door.visits]
        ends += [door.listens_again_at for door in self._doors if door.listens_again_at is not None]
        return min(ends, default=None)

    def let_time_pass(self, spent: float) -> None:
        """`spent` went by while this thread was with one client; if it was long, the others are not to blame."""
        now = time.monotonic()
        if spent > LONG_SECONDS:
            for visit in [visit for door in self._doors for visit in door.visits]:
                visit.ends += spent
        for visit in [visit for visit in self._parked if visit.wait is not None and visit.wait.ends <= now]:
            self._unpark(visit, Wait.NOTHING)
        for door in list(self._doors):
            for visit in [visit for visit in door.visits if visit.wait is None and visit.ends <= now]:
                self._time_out(visit)
            if door.listens_again_at is not None and door.listens_again_at <= now:
                door.listens_again_at = None
                self._listen(door)

    def _time_out(self, visit: Visit) -> None:
        if visit.owed or visit.asked is not None:
            self._leave(visit)
        else:
            visit.refuse(StoreUnavailable(store=visit.door.address, problem="no whole request came in time"))
            self._write(visit)

    # -- coming in -----------------------------------------------------------------------------------------------

    def _listen(self, door: Door) -> None:
        if door.listener is not None and len(door.visits) < VISITS and not self._is_watched(door.listener):
            self.selector.register(door.listener, EVENT_READ, lambda: self._accept(door))

    def _is_watched(self, source: socket) -> bool:
        """By its number: a socket that the map does not know it would describe, for which it asks the system twice."""
        return source.fileno() in self.selector.get_map()

    def _stop_listening(self, door: Door) -> None:
        if door.listener is not None and self._is_watched(door.listener):
            self.selector.unregister(door.listener)

    def _accept(self, door: Door) -> None:
        while door.listener is not None and len(door.visits) < VISITS:
            try:
                connection, _ = door.listener.accept()
            except BlockingIOError:
                return
            except OSError:
                self._stop_listening(door)
                door.listens_again_at = time.monotonic() + BREATH_SECONDS
                return
            self._let_in(connection, door)
        self._stop_listening(door)

    def _let_in(self, connection: socket, door: Door) -> None:
        connection.setblocking(False)
        if not _is_mine(connection):
            connection.close()
            return
        visit = Visit(connection, door)
        door.visits.add(visit)
        self.selector.register(connection, EVENT_READ, lambda: self._read(visit))

    def _read(self, visit: Visit) -> None:
        try:
            if not visit.read():
                self._leave(visit)
                return
        except MamError as error:
            visit.refuse(error)
            self._write(visit)
            return
        if visit.asked is not None:
            self.selector.unregister(visit.connection)
            visit.door.turns.append(visit)
            self._take_turns(visit.door)

    # -- being answered ------------------------------------------------------------------------------------------

    def _take_turns(self, door: Door) -> None:
        while door.turns and door.owed <= OWED_LIMIT:
            visit = door.turns.popleft()
            try:
                self._carry_out(visit)
            except MamError as error:
                visit.refuse(error)
            except Exception as error:  # whatever a client has done, the worker goes on
                visit.refuse(StoreUnavailable(store=door.address, problem=f"{type(error).__name__} in the worker"))
            if visit.wait is None:
                self._write(visit)

    def _carry_out(self, visit: Visit) -> None:
        asked, door = visit.asked, visit.door
        assert asked is not None
        door.announce()
        if asked.verb == "wait":
            self._park(visit, Wait(door.bound, asked))
            return
        visit.answer(answer(door.bound, asked))
        if is_sign(asked.verb):
            door.sign()

    def _write(self, visit: Visit) -> None:
        if not visit.write():
            self._leave(visit)
            return
        change = self.selector.modify if self._is_watched(visit.connection) else self.selector.register
        change(visit.connection, EVENT_WRITE, lambda: self._write_on(visit))

    def _write_on(self, visit: Visit) -> None:
        self._write(visit)
        self._take_turns(visit.door)

    def _leave(self, visit: Visit) -> None:
        door = visit.door
        if visit not in door.visits:
            return
        door.visits.discard(visit)
        if visit in door.turns:
            door.turns.remove(visit)
        if visit in self._parked:
            self._parked.discard(visit)
            door.waits -= 1
            self._rest_if_nobody_waits()
        if self._is_watched(visit.connection):
            self.selector.unregister(visit.connection)
        visit.connection.close()
        if door.listener is None and not door.visits:
            self._doors.discard(door)
        elif door.listens_again_at is None:
            self._listen(door)

    # -- waiting for children ------------------------------------------------------------------------------------

    def hear(self, job_ids: set[str]) -> None:
        """These jobs have changed; whoever waits for one of them is told."""
        for visit in list(self._parked):
            assert visit.wait is not None
            concerned = job_ids & visit.wait.seen.keys()
            if not concerned:
                continue
            try:
                news = visit.wait.news(concerned)
            except Exception:
                news = Wait.NOTHING  # it asks again, and hears then what is wrong
            if news is not None:
                self._unpark(visit, news)

    def _park(self, visit: Visit, wait: Wait) -> None:
        self._ear.listen()  # before the look, so that nothing falls between the two
        try:
            news = wait.news(wait.seen)
            if news is not None:
                visit.answer(news)
            else:
                visit.wait = wait
                visit.door.waits += 1
                self._parked.add(visit)
            visit.door.sign()
        finally:
            self._rest_if_nobody_waits()

    def _unpark(self, visit: Visit, said: dict[str, Any]) -> None:
        self._parked.discard(visit)
        visit.wait = None
        visit.door.waits -= 1
        visit.door.sign()
        visit.answer(said)
        self._write(visit)
        self._rest_if_nobody_waits()

    def _rest_if_nobody_waits(self) -> None:
        if not self._parked:
            self._ear.rest()


def _is_mine(connection: socket) -> bool:
    try:
        return peer_uid(connection) == os.geteuid()
    except OSError:
        return False
