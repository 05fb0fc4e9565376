"""Install a skill that teaches coding agents to use mam.

  install   write the skill to the skill directories of Claude Code, Codex and OpenCode, after a question
  show      print the skill

`mam skill VERB --help` has more.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser

SUBVERBS = ("install", "show")


def add_arguments(parser: Parser) -> None:
    parser.subverbs = {name: f"mam.cli.verbs.skill_verbs.{name}" for name in SUBVERBS}


def run(options: Options) -> int:
    code: int = options.module.run(options)
    return code
