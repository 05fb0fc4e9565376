"""Drop a prompt file, get exactly one job, find the result beside it.

  watch   take what is dropped and run it, until told to stop
  once    take what is there, run it to the end, and exit
  status  what is in the inbox: waiting, running, refused, finished

Files are named ROOT/inbox/<owner>/<repo>/<branch>/…/x.prompt.md and become x.running.md, then x.done.md or x.error.md,
which moves to ROOT/finished. `mam inbox VERB --help` says more, docs/inbox.md all of it.

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
