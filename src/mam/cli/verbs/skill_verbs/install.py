"""Put the skill where agents look for skills, after asking; prints the files.

--project (the default) is the repository that this directory is in, --user is your home directory. A file that is
there and says something else is never replaced unasked: say --replace, and the old one is kept beside it.

  mam skill install
  mam skill install --user --yes
"""

from __future__ import annotations

import os
import sys

from mam.cli.render.streams import print_json, print_row, say
from mam.errors import BadInput, Refused
from mam.skill import DIFFERENT, FOREIGN, NEW, SAME, project_root, skill_targets, write_skill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser
    from mam.skill import SkillTarget

_WORDS = {
    NEW: "will be written",
    SAME: "is there already",
    DIFFERENT: "is there and says something else",
    FOREIGN: "is no plain file and is left alone",
}


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--project", action="store_true", help="for this project (the default)")
    parser.add_argument("--user", action="store_true", help="for all your projects")
    parser.add_argument("--replace", action="store_true", help="also files that say something else")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def run(options: Options) -> int:
    if options.project and options.user:
        raise BadInput(why="--project and --user are two places; give one of them")
    if os.environ.get("MAM_SOCKET"):
        raise Refused(why="this runs inside a job; what agents read is for a person to choose")
    found = skill_targets(user=options.user, directory=project_root("."))
    wanted = [place for place in found if place.found == NEW or (place.found == DIFFERENT and options.replace)]
    for place in found:
        replaced = place.found == DIFFERENT and options.replace
        say(f"{place.path} {'will be replaced, the old one is kept beside it' if replaced else _WORDS[place.found]}")
    if wanted and not options.yes and not _agreed():
        say("nothing was written")
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
        say("--replace writes over a file that says something else")
    return 1 if left else 0


def _agreed() -> bool:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise BadInput(why="nobody is there to be asked; --yes says that it shall be done")
    sys.stderr.write("Write it? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _write(place: SkillTarget) -> None:
    if place.found == DIFFERENT:
        os.replace(place.path, f"{place.path}.before")
    write_skill(place.path)
