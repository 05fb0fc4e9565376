"""How far the journal has been sent to one broker, and who sends: small files beside the store.

    relay-<broker>.json       behind which entry of the journal the broker has taken everything
    relay-<broker>.lock       held by whoever sends
    relay-<broker>.resident   held by a relay that stays, so that others can leave the sending to it

The place is written without a sync, and only after the broker's answer: a crash leaves the new one or an older one, and
then some events are sent twice.
"""

from __future__ import annotations

import fcntl
import os
import time

from mam.frozen import Frozen
from mam.writing import to_bytes, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.audit.cursor import Position
    from mam.bus.place_postgres import PostgresPlace
    from mam.bus.settings import Broker
    from mam.stores.port import Store

_LOOK_SECONDS = 0.005
_SIZE_LIMIT = 64 * 1024
_OPEN = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class Sent(Frozen):
    """What the file says."""

    broker: str
    journal_id: str
    at: Position
    count: int = 0
    """Events that were taken since the file was made."""


def place_of(store: Store, broker: Broker) -> Place | PostgresPlace:
    """Where a store and a broker have it: beside the data, or in the database that many hosts share."""
    if store.address.startswith("postgresql://"):
        from mam.bus.place_postgres import PostgresPlace
        from mam.stores.postgres.store import PostgresStore

        assert isinstance(store, PostgresStore)
        return PostgresPlace(store, broker)
    return Place(store, broker)


def relay_directory(store: Store) -> str:
    """Beside the data of a store on this host; for one that has none there, among what mam keeps for the user."""
    if store.home is not None:
        return store.home
    if store.address.startswith("sqlite://"):
        return f"{store.address.removeprefix('sqlite://')}-relay"
    import hashlib

    from mam.state import state_directory

    name = hashlib.sha256(store.address.encode(errors="surrogateescape")).hexdigest()[:16]
    return os.path.join(state_directory(), "relay", name)


def file_stem(broker: Broker) -> str:
    import hashlib

    return f"relay-{hashlib.sha256(broker.address.encode()).hexdigest()[:12]}"


class Place:
    """The files of one store and one broker; nothing is made before somebody sends."""

    def __init__(self, store: Store, broker: Broker) -> None:
        self.directory = relay_directory(store)
        self.broker = broker.address
        self._stem = os.path.join(self.directory, file_stem(broker))

    def make(self) -> None:
        os.makedirs(self.directory, mode=0o700, exist_ok=True)

    def is_served(self) -> bool:
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

    def load(self) -> Sent | None:
        """None at the beginning, and for a file that cannot be read: then everything is sent once more."""
        return read_sent(f"{self._stem}.json")

    def save(self, sent: Sent) -> None:
        write_sent(f"{self._stem}.json", sent)

    def sending(self) -> Held:
        return Held(f"{self._stem}.lock")

    def staying(self) -> Held:
        return Held(f"{self._stem}.resident")


class Held:
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


def write_sent(path: str, sent: Sent) -> None:
    temporary = f"{path}.{os.getpid()}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        write_all(descriptor, to_bytes({**sent.as_dict(), "at": sent.at.as_dict()}))
    finally:
        os.close(descriptor)
    os.replace(temporary, path)


def read_sent(path: str) -> Sent | None:
    try:
        with open(path, "rb") as file:
            return parse_sent(file.read(_SIZE_LIMIT))
    except OSError:
        return None


def parse_sent(text: bytes | str) -> Sent | None:
    """None for anything that mam would not have written."""
    from mam.audit.cursor import Position
    from mam.strict_json import safe_json

    try:
        found = safe_json(text)
        at = Position(**found.pop("at"))
        sent = Sent(at=at, **found)
        return sent if isinstance(sent.journal_id, str) and isinstance(sent.count, int) else None
    except (ValueError, TypeError, AttributeError, KeyError):
        return None


def still_holds(store: Store, sent: Sent) -> bool:
    """Whether the entry before the place still says what it said, and ends there: a restored store has another end, and
    a place that was damaged would leave events out."""
    from mam.audit.cursor import mark_of

    if sent.journal_id != store.journal_id:
        return False
    if sent.at.mark is None:
        return sent.at.place is None
    try:
        last = next(iter(store.entries(sent.at.before)), None)
    except ValueError:
        return False
    return last is not None and (mark_of(last), last.cursor) == (sent.at.mark, sent.at.place)
