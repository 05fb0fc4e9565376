"""The real parser, for help texts, mistakes and everything that is not plain."""

from __future__ import annotations

import argparse
import os
import sys
from types import SimpleNamespace

from mam.cli.render.text import nearest
from mam.errors import BadInput, MamError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from mam.cli.args.parser import Group, Options, Parser


def parse_with_argparse(declared: Parser, arguments: list[str]) -> Options:
    """What argparse makes of it. Words may stand between options, which argparse alone would not accept."""
    parser = _FullParser(declared)
    options, left = parser.parse_known_args(arguments, SimpleNamespace())
    if left and hasattr(options, "words") and not any(word.startswith("-") for word in left):
        options.words += left
    elif left:
        parser.error(_not_understood(left, parser))
    return options


class _Formatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str, **options: Any) -> None:
        super().__init__(prog, max_help_position=28, width=_page_width(), **options)


class _FullParser(argparse.ArgumentParser):
    """Errors are mam's own, one line each; options are never guessed from their beginnings."""

    def __init__(self, declared: Parser) -> None:
        self.verb = declared.verb
        super().__init__(
            prog=f"mam {declared.verb}",
            usage=f"mam {declared.verb} VERB [options]" if declared.subverbs else declared.usage,
            description=declared.document,
            formatter_class=_Formatter,
            allow_abbrev=False,
            add_help=False,
        )
        _declare(declared, self)
        for group in declared.groups:
            _declare(group, self.add_argument_group(group.title))
        self.add_argument("--help", "-h", action="help", help="show this text")

    def error(self, message: str) -> NoReturn:
        raise BadInput(why=f"{message.removeprefix('argument ')}; `mam {self.verb} --help` shows what it takes")

    def option_names(self) -> list[str]:
        return [name for action in self._actions for name in action.option_strings]


def _declare(group: Group, target: argparse._ActionsContainer) -> None:
    for names, settings in group.arguments:
        if "type" in settings:
            settings = {**settings, "type": _checked(settings["type"])}
        target.add_argument(*names, **settings)


def _checked(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """argparse says which option it was; what is wrong with it is ours to say."""

    def parsed(text: str) -> Any:
        try:
            return parse(text)
        except MamError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parsed


def _not_understood(left: list[str], parser: _FullParser) -> str:
    word = next((word for word in left if word.startswith("-")), left[0])
    if not word.startswith("-"):
        return f"{word[:80]!r} is one word too many"
    name = word.partition("=")[0]
    return f"{name[:80]} is not an option of this verb{nearest(name, parser.option_names())}"


def _page_width() -> int:
    try:
        return min(os.get_terminal_size(sys.__stdout__.fileno()).columns, 120) - 2 if sys.__stdout__ else 98
    except (OSError, ValueError):
        return 98
