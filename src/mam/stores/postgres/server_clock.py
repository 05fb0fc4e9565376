"""The server's time, by which everything is judged."""

from __future__ import annotations

from weakref import ref

from mam.clock import Moment, SystemClock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.stores.postgres.store import PostgresStore


class ServerClock:
    """PostgreSQL's time for everything that is judged; ids and chance need no judge."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = ref(store)  # weak: a store that is dropped closes its connection at once
        self._local = SystemClock()

    def now(self) -> Moment:
        store = self._store()
        assert store is not None
        return Moment(wall_ms=int(store._value("now")))

    def new_id(self) -> str:
        return self._local.new_id()

    def chance(self) -> float:
        return self._local.chance()


def moment_at(wall_ms: int) -> Moment:
    return Moment.of({"wall_ms": wall_ms, "boot_ms": 0, "boot_id": ""})
