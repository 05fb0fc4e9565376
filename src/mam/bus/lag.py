"""How far the news is behind the store."""

from __future__ import annotations

from mam.bus.sender_lock import consumer_of, sender_of
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.bus.settings import Broker
    from mam.stores.port import Store


class Lag(Frozen):
    broker: str
    waiting: int
    """Events in the journal that the broker has not taken yet."""
    sent: int
    """Events that it has taken, those that were sent twice counted twice."""
    served: bool
    """Whether a relay runs: on this host, or on any that shares the database."""


def lag_of(store: Store, broker: Broker) -> Lag:
    consumer = consumer_of(store, broker)
    consumer.load()
    waiting = sum(line["event"] == "published" for entry in consumer.entries() for line in entry.lines)
    served = sender_of(store, broker).is_served()
    return Lag(broker=broker.address, waiting=waiting, sent=consumer.count, served=served)
