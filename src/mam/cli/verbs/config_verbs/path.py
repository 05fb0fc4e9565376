"""Print the path of your file of settings.

The exit code is 0 also if the file does not exist.
"""

from __future__ import annotations

import os

from mam.cli.render.streams import print_json, print_row, say
from mam.cli.verbs.config_verbs.common import add_project, chosen_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    add_project(parser)


def run(options: Options) -> int:
    file = chosen_file(options)
    exists = os.path.exists(file)
    if options.json:
        print_json({"file": file, "exists": exists})
        return 0
    print_row(file)
    if not exists:
        say("the file does not exist yet; `mam config set` and `mam config edit` create it")
    return 0
