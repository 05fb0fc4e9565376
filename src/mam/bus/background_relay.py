"""A relay in a thread of another process, such as a worker."""

from __future__ import annotations

from threading import Event, Thread

from mam.errors import MamError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.bus.settings import Broker
    from mam.config.settings import Config
    from mam.stores.port import Store

LAST_SECONDS = 2.0


class BackgroundRelay:
    """`wake()` announces new entries in the journal; `stop()` sends the rest and ends."""

    def __init__(self, store: Store, broker: Broker, report: Callable[[str], None]) -> None:
        from mam.bus.relay import Relay

        self._relay = Relay(store, broker, report)
        self._report = report
        self._wake, self._stopped = Event(), Event()
        self._thread = Thread(target=self._run, name="mam-relay", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        self._wake.set()

    def stop(self, seconds: float = LAST_SECONDS) -> None:
        self._stopped.set()
        self._wake.set()
        self._thread.join(seconds)

    def _run(self) -> None:
        try:
            self._relay.run(self._stopped.is_set, self._wait)
        except OSError as error:
            self._report(f"the relay ended: {error.strerror}; events wait in the journal")

    def _wait(self, offset: str | None, seconds: float) -> bool:
        """Clears the flag before the relay reads the journal, so that no wake-up is lost."""
        if offset is None:  # the broker is away: new entries do not shorten the wait
            return self._stopped.wait(seconds)
        woken = self._wake.wait(seconds)
        if not self._stopped.is_set():
            self._wake.clear()
        return woken


def start_background_relay(store: Store, config: Config, report: Callable[[str], None]) -> BackgroundRelay | None:
    """Start the relay of a worker; None if no broker is configured or it cannot be used."""
    from mam.bus.delivery import require_client
    from mam.bus.settings import configured_broker

    try:
        broker = configured_broker(config.broker)
        if broker is None:
            return None
        require_client()
        background = BackgroundRelay(store, broker, report)
    except (MamError, OSError) as error:
        report(f"events are not sent from here: {error}")
        return None
    background.start()
    return background
