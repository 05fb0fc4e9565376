"""Whether the events of a new job are signed."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser
    from mam.config.settings import Config


def add_sign(parser: Parser) -> None:
    parser.add_argument(
        "--sign", action="store_true", help="sign its events with a token of its own; so is done for a broker elsewhere"
    )


def is_signed(options: Options, config: Config) -> bool:
    """Whether --sign is given or the broker is on another host."""
    import os

    host = os.environ.get("MQTT_BROKER") or config.broker.get("host")
    if options.sign or not host:
        return bool(options.sign)
    from mam.bus.settings import host_and_port, is_loopback

    return not is_loopback(host_and_port(host)[0])
