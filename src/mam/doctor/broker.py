"""Check whether the broker answers, and how many events wait."""

from __future__ import annotations

from mam.bus.relay_state import relay_lag
from mam.bus.settings import configured_broker
from mam.doctor.finding import count, fine, wrong
from mam.errors import BrokerUnavailable, MamError, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.bus.settings import Broker
    from mam.doctor.context import Context
    from mam.doctor.finding import Finding
    from mam.stores.port import Store

SECONDS = 10.0


def check(context: Context) -> Iterator[Finding]:
    try:
        broker = configured_broker(context.config.broker)
        if broker is not None:
            broker.check_safe()
    except MamError as error:
        yield wrong(str(error), "events wait in the journal, and subscribers get none", "mam config list")
        return
    if broker is None:
        yield fine("no broker is configured; subscribers follow the store")
        return
    problem = _unreachable(broker)
    if problem is not None:
        yield wrong(
            problem,
            "events wait in the journal; subscribers on other hosts get none",
            f"check that a broker listens at {broker.address}, and `mam config list`",
        )
    store = context.try_open()
    if store is not None:
        yield from _lag(store, broker, reachable=problem is None)


def _unreachable(broker: Broker) -> str | None:
    from mam.bus.delivery import require_client

    require_client()
    from mam.bus.connection import Connection

    try:
        with Connection(broker, "doctor", SECONDS):
            return None
    except BrokerUnavailable as error:
        return str(error)


def _lag(store: Store, broker: Broker, *, reachable: bool) -> Iterator[Finding]:
    lag = relay_lag(store, broker)
    if not lag.waiting:
        if reachable:
            yield fine(f"{lag.broker} answers and has every event")
        return

    def send() -> None:
        from mam.bus.relay import Relay

        said: list[str] = []
        Relay(store, broker, said.append).deliver(60.0)
        if relay_lag(store, broker).waiting:
            raise Refused(why=said[-1] if said else "the broker did not accept them")

    if lag.served:
        yield fine(f"{count(lag.waiting, 'event')} on the way to {lag.broker}: a relay is sending")
        return
    yield wrong(
        f"{count(lag.waiting, 'event')} not sent to {lag.broker}, and no relay runs on this host",
        "subscribers on other hosts get them only when a relay or worker sends them",
        "mam relay --once",
        send if reachable else None,
    )
