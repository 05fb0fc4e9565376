"""Waits for news of the server: all threads of a process listen on the one connection of the store.

Whoever reads the connection first hands the news to all. A pooler that gives each transaction another connection passes
no news on: then a waiting process looks every two seconds.
"""

from __future__ import annotations

import os
import select
import time
from _thread import get_ident

from mam.stores.interest import Prospect, parse_news

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.stores.interest import Interest, News
    from mam.stores.postgres.client import Client
    from mam.stores.postgres.connection import Connection

POLL_SECONDS = 2.0
_EARLIER_WRITERS_SECONDS = 2.0


class Listener:
    """The waiting threads of one process."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._process = os.getpid()
        self._connection: Connection | None = None
        """The connection that listens."""
        self._labels: set[str] = set()
        self._waiters: dict[int, Waiter] = {}
        self.is_reached = True
        """Whether news arrive."""

    def wait(self, timeout: float, interest: Interest | None) -> bool:
        """Whether there may be something new; the first call says so at once."""
        waiter, is_new = self._waiter(interest)
        with self._client.locked() as connection:
            if connection is not self._connection or not self._labels.issuperset(waiter.labels):
                self._listen(connection)
                is_new = True
        if is_new:
            return True
        if not self.is_reached:
            time.sleep(min(timeout, POLL_SECONDS))
            return interest is not None
        return waiter.wait(self, timeout)

    def _waiter(self, interest: Interest | None) -> tuple[Waiter, bool]:
        if self._process != os.getpid():
            self._process, self._connection, self._waiters = os.getpid(), None, {}
        waiter = self._waiters.get(get_ident())
        if waiter is not None and waiter.interest is interest:
            return waiter, False
        if waiter is not None:
            waiter.close()
        waiter = self._waiters[get_ident()] = Waiter(interest)
        return waiter, True

    def _listen(self, connection: Connection) -> None:
        """Before it returns, every writer has committed that did not know of this one."""
        rows = self._client.write
        if connection is not self._connection:
            self._labels = set()
            rows("listen", {})
            ((process, _),) = rows("begin to listen", {})
            self.is_reached = process == connection.info.backend_pid
            self._connection = connection
        wanted = {label for waiter in self._waiters.values() for label in waiter.labels}
        for label in wanted - self._labels if self.is_reached else ():
            rows("wait for label", {"label": label})
        self._labels |= wanted
        ((last,),) = rows("last writer", {})
        ends = time.monotonic() + _EARLIER_WRITERS_SECONDS
        while last is not None and rows("earlier writers", {"key": last}) and time.monotonic() < ends:
            time.sleep(0.005)

    def read(self) -> int | None:
        """Passes on what the server has sent. Returns the descriptor to wait for; None when the connection is gone."""
        with self._client.locked() as connection:
            if connection is not self._connection:
                return None
            connection.pgconn.consume_input()
            while found := connection.pgconn.notifies():
                self.hear(found.extra.decode())
            return connection.fileno()

    def hear(self, text: str) -> None:
        news = parse_news(text)
        if news is not None:
            for waiter in list(self._waiters.values()):
                waiter.hear(news)

    def wake(self) -> None:
        """The connection is gone."""
        for waiter in list(self._waiters.values()):
            waiter.wake()

    def close(self) -> None:
        """Wakes all; from any thread."""
        for thread in list(self._waiters):
            waiter = self._waiters.pop(thread, None)
            if waiter is not None and self._process == os.getpid():
                waiter.close()


class Waiter:
    """One waiting thread."""

    def __init__(self, interest: Interest | None) -> None:
        self.interest = interest
        self.labels = () if interest is None else ("", *interest.labels)
        self._prospect = Prospect()
        self._is_closed = False
        self._wakes, self._waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def wait(self, listener: Listener, timeout: float) -> bool:
        ends = time.monotonic() + timeout
        while not self._is_closed:
            connection = listener.read()
            now = time.monotonic()
            if connection is None:
                return True
            if self._prospect.looks_at <= now:
                self._prospect.forget()
                return True
            if ends <= now:
                return False
            left = min(ends, self._prospect.looks_at) - now
            poll = select.poll()
            poll.register(connection, select.POLLIN)
            poll.register(self._wakes, select.POLLIN)
            for found, _ in poll.poll(max(1, left * 1000)):
                if found == self._wakes:
                    self._drain()
        return True

    def hear(self, news: News) -> None:
        if self.interest is None:
            self._prospect.looks_at = 0.0
        else:
            self._prospect.hear(news, self.interest)
        self.wake()

    def wake(self) -> None:
        try:
            os.write(self._waker, b"!")
        except OSError:
            pass  # it is full: the thread wakes anyway

    def _drain(self) -> None:
        try:
            os.read(self._wakes, 4096)
        except OSError:
            pass

    def close(self) -> None:
        self._is_closed = True
        self.wake()

    def __del__(self) -> None:
        os.close(self._wakes)
        os.close(self._waker)
