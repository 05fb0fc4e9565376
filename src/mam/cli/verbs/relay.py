"""Send the events of the journal to the broker until stopped.

Every worker runs a relay; this verb is for stores without a worker. Several relays are safe: one sends, and another
takes over when it ends. A killed relay loses nothing: the next one sends again what the broker has not acknowledged.

  mam relay
  mam relay --once      # send the waiting events, then exit
  mam relay --status    # print the number of waiting events
"""

from __future__ import annotations

import signal
import time

from mam.cli.args.options import registry_of
from mam.cli.render.streams import print_json, print_row, say
from mam.cli.send_event import add_broker
from mam.errors import BadInput
from mam.machine.processes import not_ignored

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

    from mam.bus.background_relay import BackgroundRelay
    from mam.bus.settings import Broker
    from mam.cli.args.parser import Options, Parser
    from mam.config.settings import Config
    from mam.registry import Registry
    from mam.stores.port import Store

ONCE_SECONDS = 600.0
STOP_SECONDS = 5.0
"""How long a stopped relay waits for a broker that does not answer."""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--once", action="store_true", help="send the waiting events, then exit")
    parser.add_argument("--status", action="store_true", help="print how many events wait, and whether a relay runs")
    parser.add_argument(
        "--from-now", action="store_true", help="skip what the journal already contains, for a new broker"
    )
    add_broker(parser)


def run(options: Options) -> int:
    from mam.config.settings import load_config

    registry = registry_of(options)
    config = load_config()
    brokers = _brokers(registry, config, options)
    if options.status:
        return _show(registry, brokers, as_json=options.json)
    if not brokers:
        raise BadInput(why="no broker is configured: set MQTT_BROKER, or [broker] in config.toml")
    _prepare(brokers)
    if options.from_now:
        _skip_to_end(registry, brokers)
    if options.once:
        return _once(registry, brokers)
    return _run_forever(registry, brokers)


def _brokers(registry: Registry, config: Config, options: Options) -> list[Broker]:
    """The configured broker; without one, the brokers that old records name."""
    from mam.bus.settings import configured_broker, record_broker
    from mam.stores.port import Query

    own = configured_broker(config.broker, insecure=options.insecure_broker)
    if own is not None:
        return [own]
    found: dict[str, Broker] = {}
    for job in registry.select(Query()):
        if job.broker.get("host"):
            named = record_broker(job, registry.store.secrets(job.job_id), insecure=options.insecure_broker)
            if named is not None:
                found.setdefault(named.address, named)
    return list(found.values())


def _prepare(brokers: list[Broker]) -> None:
    from mam.bus.delivery import require_client

    require_client()
    for broker in brokers:
        broker.check_safe()
        if broker.insecure and not broker.tls and not broker.is_local:
            say(f"the connection to {broker.address} has no TLS: others can read and forge these events")


def _skip_to_end(registry: Registry, brokers: list[Broker]) -> None:
    from mam.bus.relay_state import relay_consumer

    for broker in brokers:
        relay_consumer(registry.store, broker).skip_to_end()


def _once(registry: Registry, brokers: list[Broker]) -> int:
    from mam.bus.relay import Relay

    for broker in brokers:
        Relay(registry.store, broker, say).deliver(ONCE_SECONDS)
    return 0


def _run_forever(registry: Registry, brokers: list[Broker]) -> int:
    from mam.bus.background_relay import BackgroundRelay
    from mam.bus.relay import Relay

    sleeper = _Sleeper(registry.store)
    others = [BackgroundRelay(registry.store, broker, say) for broker in brokers[1:]]
    for other in others:
        other.start()
    say(f"sending the events of {registry.store.address} to {', '.join(broker.address for broker in brokers)}")
    relay = Relay(registry.store, brokers[0], say)
    try:
        try:
            relay.run(sleeper.is_stopped, lambda *sleep: sleeper.wait(others, *sleep))
        finally:
            for other in others:
                other.stop()
    except _Interrupted:
        say("stopped before the broker answered; unacknowledged events wait in the journal")
    return 0


class _Sleeper:
    """Sleeps until the journal has new entries or a signal stops the relay.

    The first signal lets the current delivery finish within STOP_SECONDS; the second interrupts it. What is interrupted
    is sent again later.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._stopped = self._asleep = False
        for number in (signal.SIGINT, signal.SIGALRM, *not_ignored(signal.SIGTERM, signal.SIGHUP)):
            signal.signal(number, self._stop)

    def is_stopped(self) -> bool:
        return self._stopped

    def wait(self, others: list[BackgroundRelay], place: str | None, seconds: float) -> bool:
        self._asleep = True
        woken = True
        try:
            if self._stopped:
                return woken
            if place is None:
                time.sleep(seconds)
            else:
                woken = self._store.wait(place, seconds)
        except _Interrupted:
            pass
        finally:
            self._asleep = False
        for other in others:
            other.wake()
        return woken

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        at_once = self._asleep or self._stopped
        self._stopped, self._asleep = True, False
        signal.setitimer(signal.ITIMER_REAL, STOP_SECONDS)
        if at_once:
            raise _Interrupted


class _Interrupted(Exception):
    """A signal arrived during a sleep, or a second one during a delivery."""


def _show(registry: Registry, brokers: list[Broker], *, as_json: bool) -> int:
    from mam.bus.relay_state import relay_lag

    lags = [relay_lag(registry.store, broker) for broker in brokers]
    if as_json:
        print_json([lag.as_dict() for lag in lags])
        return 0
    if not lags:
        say("no broker is configured; subscribers follow the store")
    for lag in lags:
        print_row(
            lag.broker, f"{lag.waiting} waiting", f"{lag.sent} sent", "a relay runs" if lag.served else "no relay runs"
        )
    return 0
