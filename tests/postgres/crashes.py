"""Ways in which a server fails: one backend, the whole server, or only its answer."""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from mam.stores.postgres.client import QUERIES, Client
from mam.stores.postgres.store import PostgresStore
from tests.postgres.server import PrivateServer

LONGEST_MS = 60_000
"""How long a process may take to go away before the test gives up. No result depends on it."""

BEFORE, AFTER = "before", "after"

Disturb = Callable[[str, str], None]
"""Told each statement, before it is sent and after it was answered."""


class DisturbedClient(Client):
    """Reports every statement; statements that are sent together have the same before and after."""

    disturb: Disturb | None = None

    def _send(self, query: str, values: Any) -> list[Any]:
        self._tell(query, BEFORE)
        rows = super()._send(query, values)
        self._tell(query, AFTER)
        return rows

    def many(self, query: str, each: Sequence[Any]) -> None:
        self._tell(QUERIES[query], BEFORE)
        super().many(query, each)
        self._tell(QUERIES[query], AFTER)

    def _tell(self, query: str, when: str) -> None:
        if self.disturb is not None:
            self.disturb(" ".join(query.split()), when)


class DisturbedStore(PostgresStore):
    """A store whose statements a test watches, and may spoil."""

    client = DisturbedClient

    @property
    def disturb(self) -> Disturb | None:
        assert isinstance(self._client, DisturbedClient)
        return self._client.disturb

    @disturb.setter
    def disturb(self, disturb: Disturb | None) -> None:
        assert isinstance(self._client, DisturbedClient)
        self._client.disturb = disturb

    def backend(self) -> int | None:
        """The process of the server that works for this store, if there is one."""
        connection = self._client._connection
        return None if connection is None or connection.closed else connection.info.backend_pid

    def hang_up(self) -> None:
        """From this side: the server sees its client go."""
        if self._client._connection is not None:
            self._client._connection.close()


@contextmanager
def disturbed(store: DisturbedStore, disturb: Disturb) -> Iterator[None]:
    store.disturb = disturb
    try:
        yield
    finally:
        store.disturb = None


class Once:
    """Lets something happen at the Nth moment of a verb; `reached` says whether the verb got so far."""

    def __init__(self, moment: int, happen: Callable[[], None]) -> None:
        self._left = moment
        self._happen = happen

    def __call__(self, statement: str, when: str) -> None:
        self._left -= 1
        if self._left == 0:
            self._happen()

    @property
    def reached(self) -> bool:
        return self._left <= 0


def end_backend(url: str, backend: int | None) -> None:
    """Returns when that process of the server is gone."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(%s)", (backend,))
        while connection.execute("SELECT FROM pg_stat_activity WHERE pid = %s", (backend,)).fetchall():
            pass


def wait_for_a_lock(url: str) -> None:
    """Until some session of mam's waits for another."""
    query = "SELECT FROM pg_stat_activity WHERE application_name = 'mam' AND wait_event_type = 'Lock'"
    with psycopg.connect(url, autocommit=True) as connection:
        while not connection.execute(query).fetchall():
            pass


def lose_the_answer(store: DisturbedStore) -> None:
    """The server did the statement, and the client does not get the answer."""
    store.hang_up()
    raise psycopg.OperationalError("the answer was lost")


def crash(server: PrivateServer) -> None:
    """SIGKILL for the postmaster; returns when the last of its processes is gone, so that it can be started again."""
    data, sockets = _folders(server)
    server.kill()
    while left := _processes(data):
        for process in left:
            _await_end(process)
    # A dead postmaster that its parent has not waited for looks alive.
    for lock in (data / "postmaster.pid", *sockets.glob(".s.PGSQL.*.lock")):
        lock.unlink()


def crash_and_restart(server: PrivateServer) -> None:
    crash(server)
    server.start()


def _folders(server: PrivateServer) -> tuple[Path, Path]:
    query = "SELECT current_setting('data_directory'), current_setting('unix_socket_directories')"
    with psycopg.connect(server.url()) as connection:
        ((data, sockets),) = connection.execute(query).fetchall()
    return Path(data), Path(sockets)


def _processes(data: Path) -> list[int]:
    """Every process of a server works in its data directory."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                here = os.readlink(entry / "cwd")
            except OSError:
                continue  # gone, or another user's
            if here == str(data):
                found.append(int(entry.name))
    return found


def _await_end(process: int) -> None:
    try:
        handle = os.pidfd_open(process)
    except ProcessLookupError:
        return
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        assert poll.poll(LONGEST_MS), f"process {process} outlived its postmaster"
    finally:
        os.close(handle)
