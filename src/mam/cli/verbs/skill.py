"""Teach coding agents to use mam: a skill that they read when they need it.

  install   put it where Claude Code, Codex and OpenCode look for skills, after asking
  show      print it

`mam skill VERB --help` says more.
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
