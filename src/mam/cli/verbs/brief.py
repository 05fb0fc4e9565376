"""Print a job's brief: the old name of `mam explain --brief`."""

from __future__ import annotations

from mam.cli.args.options import add_job
from mam.cli.verbs.explain import print_brief

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    add_job(parser, own=True)


def run(options: Options) -> int:
    return print_brief(options)
