"""Print a shell's completion script for mam.

It completes verbs, options, jobs, labels, statuses and settings.

  eval "$(mam completion bash)"    # in ~/.bashrc
  eval "$(mam completion zsh)"     # in ~/.zshrc
  mam completion fish > ~/.config/fish/completions/mam.fish

At each Tab, the shell runs `mam completion words -- WORDS…`, which takes well under a tenth of a second and changes
nothing.
"""

from __future__ import annotations

import os
import sys

from mam.cli.render.text import nearest
from mam.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser

SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: Parser) -> None:
    parser.takes_command = True
    parser.add_argument(
        "word", nargs="?", metavar="SHELL", help=f"{', '.join(SHELLS)}; or words, which the script calls"
    )


def run(options: Options) -> int:
    if options.word == "words":
        from mam.cli.args.completion import print_candidates

        return print_candidates(options.command or [""])
    if options.word not in SHELLS:
        problem = "give a shell" if options.word is None else f"{options.word[:40]!a} is not a shell that mam supports"
        hint = "" if options.word is None else nearest(options.word, SHELLS)
        raise BadInput(why=f"{problem}{hint}; there are {', '.join(SHELLS)}")
    path = os.path.join(os.path.dirname(__file__), "completions", f"mam.{options.word}")
    with open(path, encoding="utf-8") as file:
        sys.stdout.write(file.read())
    return 0
