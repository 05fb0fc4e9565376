"""The event loop of the doors' thread: accept, read, execute, answer, close.

It never waits for a client. Everything runs in this one thread, so nothing is locked.
"""

from __future__ import annotations

import os
import time
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector

from mam.door_client import peer_uid
from mam.errors import MamError, StoreUnavailable
from mam.work.door.child_waits import ParkedWait
from mam.work.door.connection import Connection
from mam.work.door.handlers import answer, shows_activity
from mam.work.door.question_waits import ParkedQuestion

TYPE_CHECKING = False
if TYPE_CHECKING:
    from socket import socket
    from typing import Any

    from mam.work.door.child_waits import ChildWaiter
    from mam.work.door.server import Door

MAX_CONNECTIONS = 32
"""Connections that one door serves at once."""

QUEUE = 128
"""As many more wait in the kernel, which refuses others; those try again."""

UNSENT_LIMIT = 1 << 24
"""The limit for answers that the clients of one door leave unread; above it the door answers no more requests."""

LONG_SECONDS = 0.2
"""Longer than any request takes, unless the store is slow or locked."""

ACCEPT_PAUSE_SECONDS = 0.2
"""Pause after the system refused a connection for lack of a resource."""

_PARKED: dict[str, type[ParkedWait | ParkedQuestion]] = {"wait": ParkedWait, "await": ParkedQuestion}
"""The verbs whose requests may be parked, because they wait for the store."""


class DoorEventLoop:
    """All open doors and their connections."""

    def __init__(self, child_waiter: ChildWaiter) -> None:
        self.selector = DefaultSelector()
        self._doors: set[Door] = set()
        self._parked: set[Connection] = set()
        self._child_waiter = child_waiter

    # -- doors ---------------------------------------------------------------------------------------------------

    def open(self, door: Door) -> None:
        self._doors.add(door)
        self._listen(door)

    def shut(self, door: Door) -> None:
        """Clients that have an answer may still read it; all other connections are closed."""
        self._stop_listening(door)
        if door.listener is not None:
            door.listener.close()
            door.listener = None
        door.listens_again_at = None
        for connection in [connection for connection in door.connections if not connection.unsent]:
            self._leave(connection)
        if not door.connections:
            self._doors.discard(door)

    def shut_all(self) -> None:
        for door in list(self._doors):
            self.shut(door)

    def is_empty(self) -> bool:
        return not self._doors

    def drop_all(self) -> None:
        for door in list(self._doors):
            for connection in list(door.connections):
                self._leave(connection)
        self.selector.close()

    # -- time ----------------------------------------------------------------------------------------------------

    def next_end(self) -> float | None:
        """The next time at which something is due without a client's request."""
        ends = [
            connection.wait.ends if connection.wait else connection.ends
            for door in self._doors
            for connection in door.connections
        ]
        ends += [door.listens_again_at for door in self._doors if door.listens_again_at is not None]
        return min(ends, default=None)

    def expire(self, spent: float) -> None:
        """`spent` is the time that this thread spent on requests; if it was long, the other clients get it back."""
        now = time.monotonic()
        if spent > LONG_SECONDS:
            for connection in [connection for door in self._doors for connection in door.connections]:
                connection.ends += spent
        for connection in [
            connection for connection in self._parked if connection.wait is not None and connection.wait.ends <= now
        ]:
            assert connection.wait is not None
            self._unpark(connection, connection.wait.NOTHING)
        for door in list(self._doors):
            for connection in [
                connection for connection in door.connections if connection.wait is None and connection.ends <= now
            ]:
                self._time_out(connection)
            if door.listens_again_at is not None and door.listens_again_at <= now:
                door.listens_again_at = None
                self._listen(door)

    def _time_out(self, connection: Connection) -> None:
        if connection.unsent or connection.request is not None:
            self._leave(connection)
        else:
            connection.refuse(
                StoreUnavailable(store=connection.door.address, problem="no complete request came in time")
            )
            self._write(connection)

    # -- coming in -----------------------------------------------------------------------------------------------

    def _listen(self, door: Door) -> None:
        if (
            door.listener is not None
            and len(door.connections) < MAX_CONNECTIONS
            and not self._is_watched(door.listener)
        ):
            self.selector.register(door.listener, EVENT_READ, lambda: self._accept(door))

    def _is_watched(self, source: socket) -> bool:
        """By its number: for an unknown socket object the selector would make two system calls."""
        return source.fileno() in self.selector.get_map()

    def _stop_listening(self, door: Door) -> None:
        if door.listener is not None and self._is_watched(door.listener):
            self.selector.unregister(door.listener)

    def _accept(self, door: Door) -> None:
        while door.listener is not None and len(door.connections) < MAX_CONNECTIONS:
            try:
                sock, _ = door.listener.accept()
            except BlockingIOError:
                return
            except OSError:
                self._stop_listening(door)
                door.listens_again_at = time.monotonic() + ACCEPT_PAUSE_SECONDS
                return
            self._let_in(sock, door)
        self._stop_listening(door)

    def _let_in(self, sock: socket, door: Door) -> None:
        sock.setblocking(False)
        if not _is_mine(sock):
            sock.close()
            return
        connection = Connection(sock, door)
        door.connections.add(connection)
        self.selector.register(sock, EVENT_READ, lambda: self._read(connection))

    def _read(self, connection: Connection) -> None:
        try:
            if not connection.read():
                self._leave(connection)
                return
        except MamError as error:
            connection.refuse(error)
            self._write(connection)
            return
        if connection.request is not None:
            self.selector.unregister(connection.sock)
            connection.door.queue.append(connection)
            self._serve_queue(connection.door)

    # -- being answered ------------------------------------------------------------------------------------------

    def _serve_queue(self, door: Door) -> None:
        while door.queue and door.unsent <= UNSENT_LIMIT:
            connection = door.queue.popleft()
            try:
                self._serve(connection)
            except MamError as error:
                connection.refuse(error)
            except Exception as error:  # no client may stop the worker
                connection.refuse(StoreUnavailable(store=door.address, problem=f"{type(error).__name__} in the worker"))
            if connection.wait is None:
                self._write(connection)

    def _serve(self, connection: Connection) -> None:
        request, door = connection.request, connection.door
        assert request is not None
        door.report_start()
        if request.verb in _PARKED:
            self._park(connection, _PARKED[request.verb](door.scope, request))
            return
        connection.answer(answer(door.scope, request))
        if shows_activity(request.verb):
            door.note_activity()

    def _write(self, connection: Connection) -> None:
        if not connection.write():
            self._leave(connection)
            return
        change = self.selector.modify if self._is_watched(connection.sock) else self.selector.register
        change(connection.sock, EVENT_WRITE, lambda: self._write_on(connection))

    def _write_on(self, connection: Connection) -> None:
        self._write(connection)
        self._serve_queue(connection.door)

    def _leave(self, connection: Connection) -> None:
        door = connection.door
        if connection not in door.connections:
            return
        door.connections.discard(connection)
        if connection in door.queue:
            door.queue.remove(connection)
        if connection in self._parked:
            wait = self._no_longer_parked(connection)
            if door.listener is not None:
                wait.abandon()
            self._pause_waiter_if_idle()
        if self._is_watched(connection.sock):
            self.selector.unregister(connection.sock)
        connection.sock.close()
        if door.listener is None and not door.connections:
            self._doors.discard(door)
        elif door.listens_again_at is None:
            self._listen(door)

    # -- waiting for children, and for answers -------------------------------------------------------------------

    def wake_waiters(self, job_ids: set[str]) -> None:
        """Answers the parked requests that wait for a change of one of these jobs."""
        for connection in list(self._parked):
            assert connection.wait is not None
            concerned = job_ids & connection.wait.seen.keys()
            if not concerned:
                continue
            try:
                changes = connection.wait.changes(concerned)
            except Exception:
                changes = connection.wait.NOTHING  # the client asks again and then gets the error
            if changes is not None:
                self._unpark(connection, changes)

    def _park(self, connection: Connection, wait: ParkedWait | ParkedQuestion) -> None:
        self._child_waiter.listen()  # before the first read, so that no change falls between the two
        try:
            changes = wait.changes(wait.seen)
            if changes is not None:
                connection.answer(changes)
            else:
                connection.wait = wait
                connection.door.waits += wait.is_for_children
                self._parked.add(connection)
                if not wait.is_for_children:
                    # A client that waits sends nothing more: what can be read is its end.
                    self.selector.register(connection.sock, EVENT_READ, lambda: self._leave(connection))
            connection.door.note_activity()
        finally:
            self._pause_waiter_if_idle()

    def _unpark(self, connection: Connection, said: dict[str, Any]) -> None:
        self._no_longer_parked(connection)
        connection.door.note_activity()
        connection.answer(said)
        self._write(connection)
        self._pause_waiter_if_idle()

    def _no_longer_parked(self, connection: Connection) -> ParkedWait | ParkedQuestion:
        wait, connection.wait = connection.wait, None
        assert wait is not None
        self._parked.discard(connection)
        connection.door.waits -= wait.is_for_children
        return wait

    def _pause_waiter_if_idle(self) -> None:
        if not self._parked:
            self._child_waiter.rest()


def _is_mine(sock: socket) -> bool:
    try:
        return peer_uid(sock) == os.geteuid()
    except OSError:
        return False
