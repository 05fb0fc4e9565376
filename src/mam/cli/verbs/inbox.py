"""Run prompt files that are dropped into a directory.

  watch   run new files until you stop it
  once    run the files that exist now, then exit
  status  print the files of the inbox: waiting, running, refused, finished

Each file becomes exactly one job. ROOT/inbox/<owner>/<repo>/<branch>/…/x.prompt.md is renamed to x.running.md, then to
x.done.md or x.error.md, which moves to ROOT/finished. `mam inbox VERB --help` has more; docs/inbox.md has everything.

  cp fix-login.prompt.md inbox/acme/shop/main/
  mam inbox once --agent claude-code
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser

SUBVERBS = ("watch", "once", "status")


def add_arguments(parser: Parser) -> None:
    parser.subverbs = {name: f"mam.cli.verbs.inbox_verbs.{name}" for name in SUBVERBS}


def run(options: Options) -> int:
    code: int = options.module.run(options)
    return code
