"""Add a rule to your file of settings; print the rule.

  mam rules add allow --agent claude-code -- git status
  mam rules add allow --tool Edit
  mam rules add deny --reason "use a branch" -- git push
  mam rules add ask --first -- npm publish

The words after -- are the first words of a command. `allow` needs a tool or such words, and a terminal: no script or
agent can add it. Workers that run obey a new rule from the next question on.
"""

from __future__ import annotations

import sys

from mam.cli.render.streams import print_json, print_row
from mam.config.settings import config_file
from mam.errors import BadInput, Refused
from mam.jobs.question import ALLOW
from mam.jobs.rules import ACTIONS, rule_from_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    parser.usage = "mam rules add allow|deny|ask [--agent A] [--tool T] [--reason R] [--first] [-- COMMAND…]"
    parser.takes_command = True
    parser.add_argument("word", nargs="?", metavar="DO", help="allow, deny or ask")
    parser.add_argument("--agent", metavar="A", help="only for this agent")
    parser.add_argument("--tool", metavar="T", help="only for this tool; `command` is every tool that runs commands")
    parser.add_argument("--reason", metavar="R", help="what the agent reads when it is denied")
    parser.add_argument("--first", action="store_true", help="try it before the other rules of your file")


def run(options: Options) -> int:
    do, argv = options.word, list(options.command or ())
    if do not in ACTIONS:
        raise BadInput(why=f"give what to do, {', '.join(ACTIONS)}, and the command after --")
    given = {"do": do, "agent": options.agent, "tool": options.tool, "argv": argv, "reason": options.reason}
    rule = rule_from_fields({name: value for name, value in given.items() if value not in (None, [])})
    if do == ALLOW and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Refused(why="a rule that allows can be added only at a terminal")
    from mam.config.edit import add_to_list

    add_to_list(config_file(), "rules", rule.to_json() | ({"argv": argv} if argv else {}), at_start=options.first)
    if options.json:
        print_json({**rule.to_json(), "file": config_file()})
    else:
        print_row(str(rule))
    return 0
