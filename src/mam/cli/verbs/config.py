"""Show and change the settings.

  list    every setting: its value, its default, its variable, and who says so
  get     one value
  set     write one into your file, or with --project into the project's
  unset   take one out again
  path    print where your file is
  edit    open it in your editor; it is taken over only if it is valid

A setting is named as in the file, with dots: on_idle, broker.host, commands.my-agent.argv. A flag wins over the
environment, which wins over your file, which wins over the project's file (as far as it is trusted), which wins over
the default. `mam trust` lets a project's file count in full.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser

SUBVERBS = ("list", "get", "set", "unset", "path", "edit")


def add_arguments(parser: Parser) -> None:
    parser.subverbs = {name: f"mam.cli.verbs.config_verbs.{name}" for name in SUBVERBS}


def run(options: Options) -> int:
    code: int = options.module.run(options)
    return code
