"""Run the files that are in the inbox now, then exit.

stdout has one line for each file: id, status, and the path of its outcome below the root. The exit code is 0 if all
completed, 7 if a job ended in error, 8 if one was cancelled, and 1 if a file could not become a job. Jobs that wait for
a time, for other jobs or for another label stay in the store.

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
