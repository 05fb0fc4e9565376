"""Print the store that mam uses here, and the reason."""

from __future__ import annotations

from mam.cli.render.streams import print_json, print_row, say
from mam.config.settings import load_config
from mam.errors import MamError
from mam.location.stores import POSTGRES, check_ownership, locate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    """No arguments of its own."""


def run(options: Options) -> int:
    found = locate(options.store, options.registry_dir, load_config())
    if options.json:
        print_json({"store": found.shown, "why": found.why, "exists": found.exists, "logs_dir": found.logs_dir})
        return 0
    print_row(found.shown)
    # Only the server knows whether the store exists, and this verb opens nothing.
    is_known_empty = not found.exists and found.kind != POSTGRES
    say(f"{found.why}; the store does not exist yet" if is_known_empty else found.why)
    try:
        check_ownership(found)
    except MamError as error:
        say(str(error))
    return 0
