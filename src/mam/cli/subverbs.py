"""A verb whose first word chooses what the rest may be: `mam agents start …`. Only the chosen module is imported."""

from __future__ import annotations

from mam.cli.parser import Parser
from mam.cli.text import nearest, one_line
from mam.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    from mam.cli.parser import Options

_WITH_VALUE = ("--store", "--registry-dir")


class SubverbParser(Parser):
    """Reads the first word and leaves the rest to a parser of that word's own."""

    modules: Mapping[str, str]

    def read(self, arguments: list[str]) -> Options:
        at = _first_word(arguments)
        if at is None:
            self._read(arguments)  # --help, or a mistake
            raise BadInput(why=f"`mam {self.verb}` needs one of {', '.join(self.modules)}; --help tells what each does")
        word = arguments[at]
        if word not in self.modules:
            hint = nearest(word, self.modules)
            raise BadInput(why=f"{one_line(word[:80])} is not a verb of `mam {self.verb}`{hint}")
        module: ModuleType = __import__(self.modules[word], fromlist=["run"])
        parser = Parser(f"{self.verb} {word}", module.__doc__ or "")
        module.add_arguments(parser)
        parser.groups += self.groups
        options = parser.read(arguments[:at] + arguments[at + 1 :])
        options.module = module
        return options


def choose(parser: Parser, modules: Mapping[str, str]) -> None:
    """Makes the parser of a verb one that knows these second words."""
    parser.usage = f"mam {parser.verb} VERB [options]"
    parser.__class__ = SubverbParser
    assert isinstance(parser, SubverbParser)
    parser.modules = modules


def _first_word(arguments: list[str]) -> int | None:
    """Options of every verb may stand before it."""
    at = 0
    while at < len(arguments) and arguments[at].startswith("-"):
        if arguments[at] == "--" or arguments[at] in ("--help", "-h"):
            return None
        at += 2 if arguments[at] in _WITH_VALUE else 1
    return at if at < len(arguments) else None
