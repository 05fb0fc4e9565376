"""`mam admin cleanup registry`: the same as `mam agents cleanup`."""

from __future__ import annotations

from mam.cli.verbs.agents_verbs import cleanup
from mam.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    parser.add_argument("word", nargs="?", metavar="WHAT", help="registry: the directory of live sessions")
    cleanup.add_arguments(parser)


def run(options: Options) -> int:
    if options.word != "registry":
        raise BadInput(why="give what to clean up: `mam admin cleanup registry`")
    return cleanup.run(options)
