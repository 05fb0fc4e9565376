"""Show and change the settings.

  list    print every setting: value, origin, default and variable
  get     print one value
  set     write a setting to your file, or with --project to the project's file
  unset   remove a setting from the file
  path    print the path of your file
  edit    open the file in your editor; mam accepts it only if it is valid

The name of a setting has dots for tables: on_idle, broker.host, commands.my-agent.argv. In order of precedence: a flag,
the environment, your file, the project's file (as far as you trust it), the default. `mam trust` accepts the whole file
of a project.
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
