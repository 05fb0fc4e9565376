"""How far the news is behind the store."""

from __future__ import annotations

from mam.audit.cursor import BEGINNING, position_behind
from mam.bus.place import Sent, place_of, still_holds
from mam.frozen import Frozen

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
    place = place_of(store, broker)
    sent = place.load()
    begin = sent.at.place if sent is not None and still_holds(store, sent) else None
    waiting = sum(line["event"] == "published" for entry in store.entries(begin) for line in entry.lines)
    return Lag(broker=broker.address, waiting=waiting, sent=0 if sent is None else sent.count, served=place.is_served())


def skip_to_end(store: Store, broker: Broker) -> None:
    """As if everything in the journal had been sent. Only for whoever knows that nobody waits for it."""
    place = place_of(store, broker)
    place.make()
    at = BEGINNING
    for entry in store.entries(None):
        at = position_behind(entry, at.place)
    place.save(Sent(broker=broker.address, journal_id=store.journal_id, at=at))
