"""Serve the store to browsers and programs: a page, an API, live events.

It prints the address. The one-time code at its end logs one browser in. `mam token create` makes tokens for programs,
`mam token pair` a code for a phone. The server runs no agent, and every other command works without it.

By default, only this host can reach it. For others, put a proxy with TLS in front and name it with --public-url, or
give a certificate. SIGTERM and Ctrl-C end it after the requests that run.

  mam serve
  mam serve --open
  mam serve --behind-proxy --public-url https://mam.example
"""

from __future__ import annotations

import os
import sys
from functools import cache

from mam.cli.args.options import number, registry_of
from mam.cli.render.streams import print_json, print_row, say
from mam.errors import BadInput
from mam.machine.agent_tree import check_outside_agents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser
    from mam.serve.run import Listener
    from mam.serve.server import Server
    from mam.serve.settings import ServeSettings


VALET = "127.0.0.1:8888"


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--host", metavar="H", help="the address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=number, metavar="P", help="the port (default: 8626); 0: any")
    parser.add_argument("--tls-cert", metavar="FILE", help="the certificate, with its chain, in PEM")
    parser.add_argument("--tls-key", metavar="FILE", help="the key of the certificate, in PEM")
    parser.add_argument("--path-prefix", metavar="PATH", default="", help="the path below which a proxy serves mam")
    parser.add_argument("--public-url", metavar="URL", help="the address at which others reach it")
    parser.add_argument("--behind-proxy", action="store_true", help="a proxy with TLS is in front")
    parser.add_argument(
        "--valet", metavar="HOST:PORT", nargs="?", const=VALET, help=f"also serve prompt-valet's routes, at {VALET}"
    )
    parser.add_argument("--open", action="store_true", help="open the page in your browser")


def run(options: Options) -> int:
    check_outside_agents("serve")
    _require_packages()
    from mam.agents.open_directory import open_directory
    from mam.config.settings import load_config
    from mam.serve.run import bind, serve
    from mam.serve.server import Server

    settings, config = _settings(options), load_config()
    _check_certificate(settings)
    listening = bind(settings)
    settings = settings.replace(port=listening.getsockname()[1])
    registry = registry_of(options, create=True, config=config)
    sessions = cache(lambda: open_directory(options.store, options.registry_dir))
    server = Server(registry, settings, config, sessions)
    more = [] if options.valet is None else [_valet(server, options.valet)]
    serve(server, listening, lambda: _announce(server, options), more)
    return 0


def _valet(server: Server, address: str) -> Listener:
    """The second listener, with the rules of the first."""
    from mam.serve.run import bind
    from mam.serve.settings import check_settings
    from mam.serve.valet.app import create_valet_app

    host, _, port = address.rpartition(":")
    if not port.isascii() or not port.isdigit():
        raise BadInput(why=f"--valet takes HOST:PORT such as {VALET}, not {address[:80]!r}")
    own = {"host": host.strip("[]") or "127.0.0.1", "port": int(port), "path_prefix": "", "public_url": None}
    settings = check_settings(server.settings.replace(**own))
    listening = bind(settings)
    settings = settings.replace(port=listening.getsockname()[1])
    say(f"prompt-valet's routes are at {settings.local_url}/api/v1")
    return create_valet_app(server, settings), listening


def _settings(options: Options) -> ServeSettings:
    from mam.serve.settings import DEFAULT_HOST, DEFAULT_PORT, ServeSettings, check_settings

    return check_settings(
        ServeSettings(
            host=DEFAULT_HOST if options.host is None else options.host,
            port=DEFAULT_PORT if options.port is None else options.port,
            tls_cert=options.tls_cert, tls_key=options.tls_key, path_prefix=options.path_prefix,
            public_url=options.public_url, behind_proxy=options.behind_proxy,
        )
    )  # fmt: skip


def _check_certificate(settings: ServeSettings) -> None:
    if settings.tls_cert is not None and settings.tls_key is not None:
        from mam.serve.tls import check_certificate

        check_certificate(settings.tls_cert, settings.tls_key)


def _announce(server: object, options: Options) -> None:
    from mam.access.credentials import CODE_MINUTES, create_code, ensure_local_token
    from mam.access.viewer import LOCAL_TOKEN
    from mam.serve.server import Server

    assert isinstance(server, Server)
    store, url = server.registry.store, server.settings.url
    ensure_local_token(store)
    if os.environ.get("JOURNAL_STREAM"):  # the log of a service is no place for a code
        print_row(url)
        say(f"serves {store.address}; `mam token pair NAME --scope admin --url {url}` logs a browser in")
        sys.stdout.flush()
        return
    address = f"{url}/login#{create_code(store, LOCAL_TOKEN).secret}"
    if options.json:
        print_json({"url": url, "login": address, "store": store.address})
    else:
        print_row(address)
        say(f"serves {store.address}; the address logs in one browser within {CODE_MINUTES} minutes; Ctrl-C ends it")
    sys.stdout.flush()
    if options.open:
        from mam.serve.browser import open_browser

        open_browser(address)


def _require_packages() -> None:
    try:
        for module in ("starlette", "uvicorn", "httptools", "jinja2"):
            __import__(module)
    except ImportError:
        from mam.util.extras import command_for

        raise BadInput(why=f"`mam serve` needs the extra `web`: {command_for('web')}") from None
