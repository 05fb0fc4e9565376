"""Remove a setting from your file; print the path of the file."""

from __future__ import annotations

from mam.cli.render.streams import print_json, print_row
from mam.cli.verbs.config_verbs.common import add_project, chosen_file, refuse_inside_a_job
from mam.config.keys import find_key
from mam.errors import BadInput, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    parser.add_argument("word", nargs="?", metavar="KEY", help="the setting")
    add_project(parser)


def run(options: Options) -> int:
    if options.word is None:
        raise BadInput(why="give a setting; `mam config list` prints them")
    refuse_inside_a_job()
    key, file = find_key(options.word), chosen_file(options)
    from mam.config.edit import unset_value

    if not unset_value(file, key.path):
        raise Refused(why=f"{key.name} is not set in {file}")
    if options.json:
        print_json({"file": file, "key": key.name, "value": None})
    else:
        print_row(file)
    return 0
