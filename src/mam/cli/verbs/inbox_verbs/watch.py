"""Take what is dropped into the inbox and run it, until told to stop.

One line on stdout for each job that ends: id, status, and the file that tells its outcome. SIGTERM hands back what
runs; Ctrl-C lets it finish, a second one hands it back. Killed with -9 it loses nothing: the next one goes on from
there.

  mam inbox watch --root ~/prompts --agent claude-code --concurrency 4
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
