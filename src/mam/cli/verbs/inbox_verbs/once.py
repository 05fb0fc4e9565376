"""Take what is in the inbox now, run it to the end, and exit.

One line on stdout for each file: id, status, and where its outcome is, below the root. Exits 0 if all went well, 7 if
a job ended in error, 8 if one was cancelled, 1 if a file could not become a job. Jobs that wait for a time, for other
jobs or for somebody else's label are left to whoever comes then.

  mam inbox once --agent shell
"""

from __future__ import annotations

from mam.cli.verbs.inbox_verbs.shared import add_work, work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    add_work(parser)


def run(options: Options) -> int:
    return work(options, once=True)
