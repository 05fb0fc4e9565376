"""Write a setting to your file; print the path of the file.

  mam config set on_idle stop
  mam config set commands.my-agent.argv \\
      '["my-agent", "--task-file", "{brief}"]'
  mam config set prices.codex \\
      '{input = 1.25, cached = 0.125, output = 10}'
  mam config set --project require_attempt true

The comments and the order of the file stay. mam rejects a value that would make the file invalid. It also rejects
secrets, because other users can read a command line.
"""

from __future__ import annotations

from mam.cli.render.streams import print_json, print_row, say
from mam.cli.verbs.config_verbs.common import add_project, chosen_file, parsed_value, refuse_inside_a_job
from mam.config.keys import find_key
from mam.config.settings import environment_text
from mam.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    parser.add_argument("words", nargs="*", metavar="KEY VALUE", help="the setting and its value")
    add_project(parser)


def run(options: Options) -> int:
    if len(options.words) != 2:
        raise BadInput(why="give a setting and its value: `mam config set KEY VALUE`")
    refuse_inside_a_job()
    key = find_key(options.words[0])
    if key.path == ("rules",):
        raise BadInput(why="`mam rules add` adds a rule, and `mam config edit` changes and removes them")
    if key.setting.kind is dict and len(key.path) == 1:
        raise BadInput(why=f"{key.name} is a table; set a key of it, or use `mam config edit`")
    value = parsed_value(key, options.words[1])
    file = chosen_file(options)
    from mam.config.edit import set_value

    set_value(file, key.path, value)
    if options.json:
        print_json({"file": file, "key": key.name, "value": value})
    else:
        print_row(file)
    if environment_text(key.setting) is not None:
        say(f"{key.setting.variable} is set and takes precedence here")
    if key.path == ("store",):
        _report_hidden_store(value)
    if options.project:
        say("the file has changed and needs trust again: `mam trust`")
    return 0


def _report_hidden_store(value: str) -> None:
    """A store in the settings is used everywhere; the store of a project is then no longer found."""
    import os

    from mam.location.stores import nearest_store

    nearest = nearest_store(os.getcwd())
    if nearest.exists and os.path.realpath(os.path.expanduser(value)) != os.path.realpath(nearest.address):
        say(f"it hides {nearest.address}; `--registry-dir {nearest.address}` selects that store")
