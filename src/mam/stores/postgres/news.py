"""Waits for news of the server: all threads of a process listen on the one connection of the store.

The thread that reads the connection first passes the news to all. A pooler that gives each transaction another
connection passes no news on: then a waiting process looks every second.
"""

from __future__ import annotations

import os
import select
import time
from _thread import get_ident

from mam.stores.interest import Prospect, parse_news
from mam.stores.postgres.connection import text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.stores.interest import Interest, News
    from mam.stores.postgres.client import Client
    from mam.stores.postgres.connection import Connection

PROBE_SECONDS, POLL_SECONDS = 1.0, 1.0
_EARLIER_WRITERS_SECONDS = 2.0


class Listener:
    """The waiting threads of one process."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._process = os.getpid()
        self._connection: Connection | None = None
        """The connection that listens."""
        self._backend = 0
        """The server process that works for it."""
        self._labels: set[str] = set()
        self._waiters: dict[int, Waiter] = {}
        self._hears: bool | None = None
        """Whether news get through; None until it was tried."""

    def wait(self, timeout: float, interest: Interest | None) -> bool:
        """Whether there may be something new; the first call says so at once."""
        waiter, is_new = self._waiter(interest)
        if not self.hears():
            return is_new or self._poll(waiter, timeout)
        with self._client.locked() as connection:
            if connection is not self._connection or not self._labels.issuperset(waiter.labels):
                self._listen(connection)
                is_new = True
        if is_new:
            return True
        return waiter.wait(self, timeout)

    def hears(self) -> bool:
        """Behind a pooler, another connection shows it: a LISTEN may go to the connection of another client."""
        if self._hears is None:
            self._hears = not self._client.is_pooled or self._probe()
        return self._hears

    def _probe(self) -> bool:
        channel = f"mam_probe_{os.urandom(8).hex()}"
        with self._client.connect() as connection:
            connection.execute(text(f"LISTEN {channel}"))
            self._client.rows("notify channel", {"channel": channel})
            ends = time.monotonic() + PROBE_SECONDS
            while (left := ends - time.monotonic()) > 0:
                if any(came.channel == channel for came in connection.notifies(timeout=left, stop_after=1)):
                    connection.execute(text(f"UNLISTEN {channel}"))
                    return True
        return False

    def _poll(self, waiter: Waiter, timeout: float) -> bool:
        """Whether the journal has grown, or the store was closed."""
        before, ends = self._end(), time.monotonic() + timeout
        while (left := ends - time.monotonic()) > 0:
            if waiter.sleep(min(left, POLL_SECONDS)) or self._end() != before:
                return True
        return False

    def _end(self) -> object:
        return self._client.rows("newest entry", {})

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
            ((_locked, self._backend),) = rows("begin to listen", {})
            self._connection = connection
        wanted = {label for waiter in self._waiters.values() for label in waiter.labels}
        for label in wanted - self._labels:
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
                self.hear(found.extra.decode(), found.be_pid)
            return connection.fileno()

    def hear(self, text: str, process: int) -> None:
        """`process`: that of the server which said it."""
        news = parse_news(text)
        if news is not None:
            for waiter in list(self._waiters.values()):
                waiter.hear(news, is_own=process == self._backend, is_first=news.first == self._backend)

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

    def sleep(self, seconds: float) -> bool:
        """Whether the store was closed."""
        select.select([self._wakes], [], [], seconds)
        self._drain()
        return self._is_closed

    def hear(self, news: News, *, is_own: bool, is_first: bool) -> None:
        if self.interest is None:
            self._prospect.look_now()
        else:
            self._prospect.hear(news, self.interest, is_own=is_own, is_first=is_first)
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
