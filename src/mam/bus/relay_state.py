"""Who sends a store's events to one broker: locks beside a local store, the server's own for PostgreSQL.

    relay-<broker>.lock       held by the process that sends
    relay-<broker>.resident   held by a relay that stays, so that others leave the sending to it

How far the journal has been sent is the position of the consumer `relay <broker>`, which the store keeps.
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
    return Consumer(store, f"relay {broker.address}")


def relay_locks(store: Store, broker: Broker) -> RelayLocks | PostgresRelayLocks:
    if store.address.startswith("postgresql://"):
        from mam.bus.relay_locks_postgres import PostgresRelayLocks
        from mam.stores.postgres.store import PostgresStore

        assert isinstance(store, PostgresStore)
        return PostgresRelayLocks(store, broker)
    return RelayLocks(store, broker)


class RelayLocks:
    """The locks of one store and one broker; their files are made when a process first sends."""

    def __init__(self, store: Store, broker: Broker) -> None:
        self._directory = _relay_directory(store)
        self._stem = os.path.join(self._directory, _file_stem(broker))

    def prepare(self) -> None:
        os.makedirs(self._directory, mode=0o700, exist_ok=True)

    def has_resident(self) -> bool:
        """Whether a relay that stays is there. Those who only ask share the lock, and so do not see each other."""
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
    """A lock that ends with its holder, however that ends."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor: int | None = None

    def take(self, seconds: float = 0) -> bool:
        """Whether it is held now, by us."""
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
    """Events in the journal that the broker has not taken yet."""
    sent: int
    """Events that it has taken, those that were sent twice counted twice."""
    served: bool
    """Whether a relay runs: on this host, or on any that shares the database."""


def relay_lag(store: Store, broker: Broker) -> Lag:
    consumer = relay_consumer(store, broker)
    consumer.load()
    waiting = sum(line["event"] == "published" for entry in consumer.entries() for line in entry.lines)
    served = relay_locks(store, broker).has_resident()
    return Lag(broker=broker.address, waiting=waiting, sent=consumer.count, served=served)


def _relay_directory(store: Store) -> str:
    """Beside the data of a store on this host; for one that has none there, among what mam keeps for the user."""
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
