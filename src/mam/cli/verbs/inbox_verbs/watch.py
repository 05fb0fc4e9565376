"""Run new files of the inbox until you stop it.

stdout has one line for each job that ends: id, status, and the file with its outcome. SIGTERM releases the running
jobs. Ctrl-C lets them finish; a second Ctrl-C releases them. After a kill with -9, the next `mam inbox` continues and
loses nothing.

  mam inbox watch --root ~/prompts --concurrency 4
"""

from __future__ import annotations

from mam.cli.verbs.inbox_verbs.shared import add_work, work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    add_work(parser)


def run(options: Options) -> int:
    return work(options, once=False)
