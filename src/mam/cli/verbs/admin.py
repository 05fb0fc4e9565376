"""Clean up: `mam admin cleanup registry` is `mam agents cleanup`.

Another system uses this name for it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    parser.subverbs = {"cleanup": "mam.cli.verbs.agents_verbs.cleanup_registry"}


def run(options: Options) -> int:
    code: int = options.module.run(options)
    return code
