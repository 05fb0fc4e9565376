"""After a verb has stored an event: off to the broker with it, if there is one."""

from __future__ import annotations

from mam.cli.render.streams import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.options import AnyRegistry
    from mam.cli.args.parser import Options, Parser
    from mam.jobs.record import Job


def add_broker(parser: Parser) -> None:
    parser.add_argument(
        "--insecure-broker", action="store_true", help="allow a broker on another host without TLS: all can read along"
    )


def deliver(options: Options, registry: AnyRegistry, job: Job) -> None:
    """What was stored is told whatever becomes of this: trouble with the broker is talk, and no failure of the verb."""
    store = getattr(registry, "store", None)
    if store is None:
        return  # a door: the worker delivers
    from mam.bus.delivery import broker_for
    from mam.bus.delivery import deliver as send
    from mam.config.settings import load_config
    from mam.errors import MamError

    try:
        broker = broker_for(store, job, load_config(), insecure=options.insecure_broker)
        if broker is None:
            return
        if broker.insecure and not broker.tls and not broker.is_local:
            say(f"everybody on the way to {broker.address} can read and forge these events")
        send(store, broker, say)
    except (MamError, OSError) as error:
        say(f"the event is stored but was not sent: {error}")
