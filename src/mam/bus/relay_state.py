"""The relay's state for one store and one broker: its locks, its position and its lag.

    relay-<broker>.lock       held by the process that sends
    relay-<broker>.resident   held by a resident relay, so that other commands leave the sending to it

PostgreSQL has advisory locks instead of files. The position is that of the consumer `relay <broker>` in the store.
"""

from __future__ import annotations

import fcntl
import os
import time

from mam.stores.consumer import Consumer
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.bus.relay_locks_postgres import PostgresRelayLocks
    from mam.bus.settings import Broker
    from mam.stores.port import Store

_LOOK_SECONDS = 0.005
_OPEN = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def relay_consumer(store: Store, broker: Broker) -> Consumer:
    """A broker that only records name has a position of its own: its relay passes over the events of other jobs."""
    return Consumer(store, f"relay {broker.address}" + ("" if broker.for_all_jobs else " for its jobs"))


def relay_locks(store: Store, broker: Broker) -> RelayLocks | PostgresRelayLocks:
    if store.address.startswith("postgresql://"):
        from mam.bus.relay_locks_postgres import PostgresRelayLocks
        from mam.stores.postgres.store import PostgresStore

        assert isinstance(store, PostgresStore)
        return PostgresRelayLocks(store, broker)
    return RelayLocks(store, broker)


class RelayLocks:
    """The locks of one store and one broker. Their files are created when a process first sends."""

    def __init__(self, store: Store, broker: Broker) -> None:
        self._directory = _relay_directory(store)
        self._stem = os.path.join(self._directory, _file_stem(broker))

    def prepare(self) -> None:
        os.makedirs(self._directory, mode=0o700, exist_ok=True)

    def has_resident(self) -> bool:
        """Whether a resident relay runs. Readers take a shared lock, so they do not block each other."""
        try:
            descriptor = os.open(f"{self._stem}.resident", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def send_lock(self) -> FileLock:
        return FileLock(f"{self._stem}.lock")

    def resident_lock(self) -> FileLock:
        return FileLock(f"{self._stem}.resident")


class FileLock:
    """A file lock. The kernel releases it when the holder ends."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor: int | None = None

    def take(self, seconds: float = 0) -> bool:
        """Returns whether this process holds the lock."""
        if self._descriptor is not None:
            return True
        descriptor = os.open(self._path, _OPEN, 0o600)
        ends = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= ends:
                    os.close(descriptor)
                    return False
                time.sleep(_LOOK_SECONDS)
        self._descriptor = descriptor
        return True

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class Lag(Frozen):
    broker: str
    waiting: int
    """Events in the journal that the broker has not acknowledged."""
    sent: int
    """Acknowledged events; an event that was sent twice counts twice."""
    served: bool
    """Whether a relay runs, on this host or on any host that shares the database."""


def relay_lag(store: Store, broker: Broker) -> Lag:
    consumer = relay_consumer(store, broker)
    consumer.load()
    waiting = sum(line["event"] == "published" for entry in consumer.entries() for line in entry.lines)
    served = relay_locks(store, broker).has_resident()
    return Lag(broker=broker.address, waiting=waiting, sent=consumer.count, served=served)


def _relay_directory(store: Store) -> str:
    """Beside a local store; otherwise in mam's state directory."""
    if store.home is not None:
        return store.home
    if store.address.startswith("sqlite://"):
        return f"{store.address.removeprefix('sqlite://')}-relay"
    import hashlib

    from mam.util.state_dir import state_directory

    name = hashlib.sha256(store.address.encode(errors="surrogateescape")).hexdigest()[:16]
    return os.path.join(state_directory(), "relay", name)


def _file_stem(broker: Broker) -> str:
    import hashlib

    return f"relay-{hashlib.sha256(broker.address.encode()).hexdigest()[:12]}"
