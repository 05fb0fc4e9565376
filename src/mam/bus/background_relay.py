"""A relay in a thread of another process, such as a worker."""

from __future__ import annotations

import os
from threading import Event, Thread

from mam.errors import MamError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.bus.settings import Broker
    from mam.config.settings import Config
    from mam.jobs.record import Job
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


class WorkerRelays:
    """The relays of a worker: one for the configured broker, otherwise one for each broker that its jobs name."""

    def __init__(self, store: Store, config: Config, report: Callable[[str], None]) -> None:
        self._store = store
        self._report = report
        self._relays: dict[str, BackgroundRelay | None] = {}
        """By the address of the broker; None for one that cannot be used."""
        self._has_own = bool(os.environ.get("MQTT_BROKER") or config.broker.get("host"))
        if self._has_own:
            from mam.bus.settings import configured_broker

            self._start(lambda: configured_broker(config.broker))

    def serve(self, job: Job) -> None:
        """Send the events of this job from now on."""
        if self._has_own or not job.broker.get("host"):
            return
        from mam.bus.settings import record_broker

        self._start(lambda: record_broker(job, self._store.secrets(job.job_id)))

    @property
    def is_sending(self) -> bool:
        return any(relay is not None for relay in list(self._relays.values()))

    def wake(self) -> None:
        for relay in list(self._relays.values()):
            if relay is not None:
                relay.wake()

    def stop(self, seconds: float = LAST_SECONDS) -> None:
        for relay in self._relays.values():
            if relay is not None:
                relay.stop(seconds)

    def _start(self, find: Callable[[], Broker | None]) -> None:
        from mam.bus.delivery import require_client

        try:
            broker = find()
            if broker is None or broker.address in self._relays:
                return
            self._relays[broker.address] = None
            require_client()
            relay = BackgroundRelay(self._store, broker, self._report)
        except (MamError, OSError) as error:
            self._report(f"events are not sent from here: {error}")
            return
        self._relays[broker.address] = relay
        relay.start()
