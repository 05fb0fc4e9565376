"""Send a stored event to the broker, if one is configured."""

from __future__ import annotations

from mam.cli.render.streams import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.options import AnyRegistry
    from mam.cli.args.parser import Options, Parser
    from mam.jobs.record import Job


def add_broker(parser: Parser) -> None:
    parser.add_argument(
        "--insecure-broker",
        action="store_true",
        help="allow a broker on another host without TLS; others can read the events",
    )


def deliver(options: Options, registry: AnyRegistry, job: Job) -> bool:
    """Returns whether there is a broker. A problem with it is only a message: the event is stored, so the verb has
    succeeded."""
    store = getattr(registry, "store", None)
    if store is None:
        return True  # a door: the worker delivers
    from mam.bus.delivery import broker_for
    from mam.bus.delivery import deliver as send
    from mam.config.settings import load_config
    from mam.errors import MamError

    try:
        broker = broker_for(store, job, load_config(), insecure=options.insecure_broker)
        if broker is None:
            return False
        if broker.insecure and not broker.tls and not broker.is_local:
            say(f"the connection to {broker.address} has no TLS: others can read and forge these events")
        send(store, broker, say)
    except (MamError, OSError) as error:
        say(f"mam stored the event but could not send it: {error}")
    return True
