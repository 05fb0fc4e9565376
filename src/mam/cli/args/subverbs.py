"""Verbs with subverbs, such as `mam agents start`. Only the module of the given subverb is imported."""

from __future__ import annotations

from mam.cli.args.parser import Parser
from mam.cli.render.text import nearest, one_line
from mam.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from mam.cli.args.parser import Options

_WITH_VALUE = ("--store", "--registry-dir")


def parse_subverb(parser: Parser, arguments: list[str]) -> Options:
    """Find the subverb and parse the rest with its own parser."""
    modules = parser.subverbs
    at = _first_word(arguments)
    if at is None:
        parser.parse_own(arguments)  # --help, or a mistake
        raise BadInput(why=f"`mam {parser.verb}` needs one of {', '.join(modules)}; --help explains them")
    word = arguments[at]
    if word not in modules:
        raise BadInput(why=f"{one_line(word[:80])} is not a verb of `mam {parser.verb}`{nearest(word, modules)}")
    module: ModuleType = __import__(modules[word], fromlist=["run"])
    own = Parser(f"{parser.verb} {word}", module.__doc__ or "")
    module.add_arguments(own)
    own.groups += parser.groups
    options = own.read(arguments[:at] + arguments[at + 1 :])
    options.module = module
    return options


def _first_word(arguments: list[str]) -> int | None:
    """The index of the subverb, which shared options may precede."""
    at = 0
    while at < len(arguments) and arguments[at].startswith("-"):
        if arguments[at] == "--" or arguments[at] in ("--help", "-h"):
            return None
        at += 2 if arguments[at] in _WITH_VALUE else 1
    return at if at < len(arguments) else None
