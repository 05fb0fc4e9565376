"""Run a small MQTT broker on this host, for tests.

It listens on 127.0.0.1 only, stores nothing and has no passwords. For production use Mosquitto: examples/mosquitto has
a configuration with TLS, passwords and an access list.

  mam broker &
  MQTT_BROKER=127.0.0.1 mam subscribe --all
"""

from __future__ import annotations

from mam.cli.args.options import number
from mam.cli.render.streams import say
from mam.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser

HOST = "127.0.0.1"


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--port", type=number, metavar="N", default=1883, help="the port to listen on (default 1883)")


def run(options: Options) -> int:
    if not 1 <= options.port <= 65535:
        raise BadInput(why="--port takes a number between 1 and 65535")
    from mam.bus.embedded import serve

    serve(HOST, options.port, lambda: say(f"the broker listens on {HOST}:{options.port}; Ctrl-C stops it"))
    return 0
