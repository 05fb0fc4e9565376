"""Print what the rules decide about a command, and which rule of which file decides; nothing runs.

  mam rules test -- git push origin main
  mam rules test --agent codex -- npm test
  mam rules test --tool Edit

A command that is one quoted word is a line for a shell. `ask` means that mam asks a person.
"""

from __future__ import annotations

import shlex

from mam.cli.render.streams import print_json, print_row
from mam.cli.verbs.rules_verbs.list import rules_by_file
from mam.errors import BadInput
from mam.jobs.question import PERMISSION, Draft
from mam.jobs.rules import ASK, COMMAND, deciding_rule, plain_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    parser.usage = "mam rules test [--agent A] [--tool T] [-- COMMAND…]"
    parser.takes_command = True
    parser.add_argument("--agent", metavar="A", default="claude-code", help="the agent (default: claude-code)")
    parser.add_argument("--tool", metavar="T", help="the tool (default: one that runs commands)")


def run(options: Options) -> int:
    words = list(options.command or ())
    if not words and options.tool is None:
        raise BadInput(why="give a command after --, or --tool")
    line = words[0] if len(words) == 1 else shlex.join(words)
    given = {"command": line} if words else {}
    draft = Draft(kind=PERMISSION, text="a test", tool=options.tool or COMMAND, input=given)
    files = rules_by_file()
    found = deciding_rule([rules for _, rules in files], options.agent, draft)
    every = [(rule, file) for file, rules in files for rule in rules]
    number, file = next(((at, file) for at, (rule, file) in enumerate(every, 1) if rule is found), (None, None))
    do = ASK if found is None else found.do
    if options.json:
        is_plain = bool(given) and plain_words(given) is not None
        print_json({"do": do, "rule": number, "file": file, "plain": is_plain})
    elif file is None:
        print_row(do, "no rule matches")
    else:
        print_row(do, f"rule {number}: {found}", file)
    return 0
