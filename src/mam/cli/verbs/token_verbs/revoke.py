"""Remove a token. Programs that use it, and browsers that were logged in with it, are refused from now on."""

from __future__ import annotations

from mam.cli.args.options import registry_of
from mam.cli.render.streams import print_json, print_row
from mam.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    parser.add_argument("word", nargs="?", metavar="NAME", help="the name of the token")


def run(options: Options) -> int:
    if options.word is None:
        raise BadInput(why="give the name of a token; `mam token list` lists them")
    from mam.access.credentials import revoke_token

    revoke_token(registry_of(options).store, options.word)
    if options.json:
        print_json({"name": options.word, "revoked": True})
    else:
        print_row(options.word)
    return 0
