"""Write the skill to the agents' skill directories; print the files.

--project (the default) writes to the repository of the current directory, --user to your home directory. mam replaces a
different file only with --replace and keeps the old one beside it.

  mam skill install
  mam skill install --user --yes
"""

from __future__ import annotations

import os

from mam.cli.render.confirm import is_confirmed
from mam.cli.render.streams import print_json, print_row, say
from mam.errors import BadInput, Refused
from mam.skill import DIFFERENT, FOREIGN, NEW, SAME, project_root, skill_targets, write_skill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser
    from mam.skill import SkillTarget

_WORDS = {
    NEW: "will be written",
    SAME: "is up to date",
    DIFFERENT: "exists and differs",
    FOREIGN: "is not a regular file; mam leaves it",
}


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--project", action="store_true", help="for this project (the default)")
    parser.add_argument("--user", action="store_true", help="for all your projects")
    parser.add_argument("--replace", action="store_true", help="also replace files that differ")
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def run(options: Options) -> int:
    if options.project and options.user:
        raise BadInput(why="give --project or --user, not both")
    if os.environ.get("MAM_SOCKET"):
        raise Refused(why="a job cannot install a skill; only a person can")
    found = skill_targets(user=options.user, directory=project_root("."))
    wanted = [place for place in found if place.found == NEW or (place.found == DIFFERENT and options.replace)]
    for place in found:
        replaced = place.found == DIFFERENT and options.replace
        say(f"{place.path} {'will be replaced; mam keeps the old file beside it' if replaced else _WORDS[place.found]}")
    if wanted and not options.yes and not is_confirmed("Write these files?"):
        say("mam wrote nothing")
        return 1
    for place in wanted:
        _write(place)
    left = [place for place in found if place.found in (DIFFERENT, FOREIGN) and place not in wanted]
    if options.json:
        print_json({"written": [place.path for place in wanted], "left": [place.path for place in left]})
    else:
        for place in wanted:
            print_row(place.path)
    if any(place.found == DIFFERENT for place in left):
        say("--replace replaces a file that differs")
    return 1 if left else 0


def _write(place: SkillTarget) -> None:
    if place.found == DIFFERENT:
        os.replace(place.path, f"{place.path}.before")
    write_skill(place.path)
