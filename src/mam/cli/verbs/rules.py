"""Show, add and try the rules that answer an agent's permissions.

  list    print the rules of each file, in the order in which mam tries them
  add     add a rule to your file of settings
  test    print what the rules decide about a command, and which rule of which file decides

  mam rules add allow --agent claude-code -- git status
  mam rules add deny --reason "use a branch" -- git push
  mam rules test -- git push origin main

The first rule that matches decides; without one, mam asks a person. If rules of a trusted project match too, the
stricter decision counts: deny, then ask, then allow. A rule names an agent, a tool and the first words of a command;
what it does not name matches anything. `allow` never matches a command with shell operators, substitutions or
newlines. Only your own file may allow something. `mam config edit` changes or removes a rule.
"""

from __future__ import annotations

from mam.machine.agent_tree import check_outside_agents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser

SUBVERBS = ("list", "add", "test")


def add_arguments(parser: Parser) -> None:
    parser.subverbs = {name: f"mam.cli.verbs.rules_verbs.{name}" for name in SUBVERBS}


def run(options: Options) -> int:
    check_outside_agents("rules")
    code: int = options.module.run(options)
    return code
