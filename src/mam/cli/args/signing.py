"""Whether the events of a new job are signed."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser


def add_sign(parser: Parser) -> None:
    parser.add_argument(
        "--sign", action="store_true", help="sign its events with a token of its own; so is done for a broker elsewhere"
    )


def is_signed(options: Options) -> bool:
    return options.sign or _broker_is_elsewhere()


def _broker_is_elsewhere() -> bool:
    import os

    from mam.config.settings import load_config

    host = os.environ.get("MQTT_BROKER") or load_config().broker.get("host")
    if not host:
        return False
    from mam.bus.settings import host_and_port, is_loopback

    return not is_loopback(host_and_port(host)[0])
