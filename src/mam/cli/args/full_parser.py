"""argparse, for help texts, mistakes and command lines that the simple parser does not read."""

from __future__ import annotations

import argparse
import textwrap
from types import SimpleNamespace

from mam.cli.args.help import page_width, wrap
from mam.cli.render.text import nearest
from mam.errors import BadInput, MamError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from mam.cli.args.parser import Group, Options, Parser


def parse_with_argparse(declared: Parser, arguments: list[str]) -> Options:
    """Parse with argparse, which alone would reject positional words between options."""
    parser = _FullParser(declared)
    options, left = parser.parse_known_args(arguments, SimpleNamespace())
    if left and hasattr(options, "words") and not any(word.startswith("-") for word in left):
        options.words += left
    elif left:
        parser.error(_unknown_argument(left, parser))
    return options


class _Formatter(argparse.HelpFormatter):
    def __init__(self, prog: str, **options: Any) -> None:
        super().__init__(prog, max_help_position=28, width=page_width(), **options)

    def _fill_text(self, text: str, width: int, _indent: str) -> str:
        """The description keeps its paragraphs, examples and columns."""
        return wrap(text, width)


class _FullParser(argparse.ArgumentParser):
    """Raises BadInput instead of exiting, and accepts no abbreviated options."""

    def __init__(self, declared: Parser) -> None:
        self.verb = declared.verb
        super().__init__(
            prog=f"mam {declared.verb}",
            usage=f"mam {declared.verb} VERB [options]" if declared.subverbs else _wrap_usage(declared.usage),
            description=declared.document,
            formatter_class=_Formatter,
            allow_abbrev=False,
            add_help=False,
        )
        _declare(declared, self)
        for group in declared.groups:
            _declare(group, self.add_argument_group(group.title))
        self.add_argument("--help", "-h", action="help", help="show this help")

    def error(self, message: str) -> NoReturn:
        raise BadInput(why=f"{message.removeprefix('argument ')}; `mam {self.verb} --help` lists the arguments")

    def option_names(self) -> list[str]:
        return [name for action in self._actions for name in action.option_strings]


def _wrap_usage(usage: str | None) -> str | None:
    """argparse wraps only the usage that it makes itself."""
    return usage and "\n".join(textwrap.wrap(usage, page_width() - len("usage: "), subsequent_indent=" " * 11))


def _declare(group: Group, target: argparse._ActionsContainer) -> None:
    for names, settings in group.arguments:
        if "type" in settings:
            settings = {**settings, "type": _checked(settings["type"])}
        target.add_argument(*names, **settings)


def _checked(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """argparse names the option; the message is mam's."""

    def parsed(text: str) -> Any:
        try:
            return parse(text)
        except MamError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parsed


def _unknown_argument(left: list[str], parser: _FullParser) -> str:
    word = next((word for word in left if word.startswith("-")), left[0])
    if not word.startswith("-"):
        return f"unexpected argument {word[:80]!r}"
    name = word.partition("=")[0]
    return f"{name[:80]} is not an option of this verb{nearest(name, parser.option_names())}"
