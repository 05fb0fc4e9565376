"""Print the value of a setting.

On a terminal, stderr also shows where the value comes from.
"""

from __future__ import annotations

from mam.cli.render.streams import print_json, print_row, say, stdout_is_terminal
from mam.cli.verbs.config_verbs.list import as_json, shown
from mam.config.keys import current, find_key
from mam.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    parser.add_argument("word", nargs="?", metavar="KEY", help="the setting, such as on_idle or broker.host")


def run(options: Options) -> int:
    if options.word is None:
        raise BadInput(why="give a setting; `mam config list` prints them")
    found = current(find_key(options.word))
    if options.json:
        print_json(as_json(found))
        return 0
    print_row(shown(found.value))
    if stdout_is_terminal():
        variable = f" ({found.key.setting.variable})" if found.source == "environment" else ""
        say(f"{found.source}{variable}{': ' + found.file if found.file else ''}")
    return 0
