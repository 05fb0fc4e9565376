"""Set up mam's MCP server, skill and hooks in coding agents.

  install   show what changes in the agents' files, ask, and write it
  remove    undo exactly these changes

`mam plugin VERB --help` has more.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser

SUBVERBS = ("install", "remove")


def add_arguments(parser: Parser) -> None:
    parser.subverbs = {name: f"mam.cli.verbs.plugin_verbs.{name}" for name in SUBVERBS}


def run(options: Options) -> int:
    code: int = options.module.run(options)
    return code
