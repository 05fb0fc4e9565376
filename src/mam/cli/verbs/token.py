"""Create, list and revoke the tokens with which programs and phones use `mam serve`.

  create    create a token and print it; it is shown only now
  list      print every token: name, scopes, bounds, expiry
  revoke    remove a token, and end everything that was logged in with it
  pair      print a one-time code and its QR code, which log in a phone

Scopes: read (the whole store), submit (registers jobs, sees and changes its own), work (claims and reports), answer
(lists and answers questions), admin (everything). `mam token VERB --help` has more.
"""

from __future__ import annotations

from mam.machine.agent_tree import check_outside_agents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser

SUBVERBS = ("create", "list", "revoke", "pair")


def add_arguments(parser: Parser) -> None:
    parser.subverbs = {name: f"mam.cli.verbs.token_verbs.{name}" for name in SUBVERBS}


def run(options: Options) -> int:
    check_outside_agents("token")
    code: int = options.module.run(options)
    return code
