"""Print a one-time code that logs in a phone, and its QR code.

The phone opens the server at --url, the address that `mam serve --public-url` names. A token NAME is created if there
is none; revoking it logs the phone out.

  mam token pair phone --url https://mam.example
"""

from __future__ import annotations

from mam.cli.args.options import registry_of
from mam.cli.render.streams import print_json, print_row, say, stdout_is_terminal
from mam.cli.verbs.token_verbs.create import add_grant_options, new_token
from mam.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    parser.add_argument("word", nargs="?", metavar="NAME", help="the name of the phone's token")
    add_grant_options(parser)
    parser.add_argument("--url", metavar="URL", help="the address of the server; default: the server on this host")


def run(options: Options) -> int:
    if options.word is None:
        raise BadInput(why="give a name: mam token pair phone --scope read,answer")
    from mam.access.credentials import PAIRING_MINUTES, create_code, tokens
    from mam.serve.settings import ServeSettings, check_settings

    url = check_settings(ServeSettings(public_url=options.url)).url
    store = registry_of(options, create=True).store
    is_known = any(token.name == options.word for token in tokens(store))
    if is_known and options.scope:
        raise BadInput(why=f"the token {options.word} exists already; omit --scope to pair one more phone with it")
    if not is_known:
        new_token(options, store)
    code = create_code(store, options.word, PAIRING_MINUTES).secret
    address = f"{url}/login#{code}"
    if options.json:
        print_json({"name": options.word, "code": code, "login": address, "minutes": PAIRING_MINUTES})
        return 0
    print_row(address)
    if stdout_is_terminal():
        _draw(address)
    say(f"open it on the phone within {PAIRING_MINUTES} minutes, or type the code {code} at {url}/login")
    return 0


def _draw(address: str) -> None:
    try:
        import segno
    except ImportError:
        from mam.util.extras import command_for

        say(f"no QR code without the extra `web`: {command_for('web')}")
        return
    segno.make(address, micro=False).terminal(compact=True)
