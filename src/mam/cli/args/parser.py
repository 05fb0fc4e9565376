"""Parse the arguments of a verb without argparse, whose import takes too long for a hook.

A verb declares its arguments once, with the parameters of argparse. What this module cannot parse for certain
(`--help`, a mistake, an unusual form) goes to an argparse parser with the same declarations.
"""

from __future__ import annotations

from types import SimpleNamespace

from mam.errors import MamError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Options = SimpleNamespace


class Group:
    """Arguments under one heading of the help text."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.arguments: list[tuple[tuple[str, ...], dict[str, Any]]] = []

    def add_argument(self, *names: str, **settings: Any) -> None:
        self.arguments.append((names, settings))


class Parser(Group):
    def __init__(self, verb: str, document: str) -> None:
        super().__init__("")
        self.verb = verb
        self.document = document
        self.usage: str | None = None
        self.takes_command = False
        """Whether the words behind -- are another command."""
        self.subverbs: dict[str, str] = {}
        """The subverbs and their modules."""
        self.groups: list[Group] = []

    def add_argument_group(self, title: str) -> Group:
        group = Group(title)
        self.groups.append(group)
        return group

    def read(self, arguments: list[str]) -> Options:
        if self.subverbs:
            from mam.cli.args.subverbs import parse_subverb

            return parse_subverb(self, arguments)
        if not self.takes_command:
            return self.parse_own(arguments)
        cut = arguments.index("--") if "--" in arguments else None
        options = self.parse_own(arguments[:cut])
        options.command = None if cut is None else arguments[cut + 1 :]
        return options

    def parse_own(self, arguments: list[str]) -> Options:
        simple = _SimpleParser(self)
        if simple.parse(arguments):
            return simple.options
        from mam.cli.args.full_parser import parse_with_argparse

        return parse_with_argparse(self, arguments)


class _SimpleParser:
    """Accepts declared options with their values, and words without a leading dash."""

    def __init__(self, parser: Parser) -> None:
        self.options = SimpleNamespace()
        self._known: dict[str, tuple[str, dict[str, Any]]] = {}
        self._word: tuple[str, str] | None = None
        self._required: set[str] = set()
        for group in (parser, *parser.groups):
            for names, settings in group.arguments:
                self._declare(names, settings)

    def parse(self, arguments: list[str]) -> bool:
        """Whether it accepted every argument."""
        words: list[str] = []
        rest = iter(arguments)
        for argument in rest:
            if not argument.startswith("-"):
                words.append(argument)
                continue
            name, equals, value = argument.partition("=")
            if name not in self._known or (equals and not name.startswith("--")):
                return False
            if not self._parse_option(*self._known[name], value if equals else None, rest):
                return False
        return self._parse_words(words) and not self._required

    def _declare(self, names: tuple[str, ...], settings: dict[str, Any]) -> None:
        flag = settings.get("action") == "store_true"
        if not names[0].startswith("-"):
            self._word = (names[0], settings["nargs"])
            setattr(self.options, names[0], [] if settings["nargs"] == "*" else None)
            return
        target = names[0].lstrip("-").replace("-", "_")
        default = settings.get("default", False if flag else None)
        setattr(self.options, target, list(default) if isinstance(default, list) else default)
        if settings.get("required"):
            self._required.add(target)
        for name in names:
            self._known[name] = (target, settings)

    def _parse_option(self, target: str, settings: dict[str, Any], value: str | None, rest: Any) -> bool:
        action = settings.get("action")
        if action == "store_true":
            setattr(self.options, target, True)
            return value is None
        if value is None and "const" in settings:
            setattr(self.options, target, settings["const"])
            return True
        if value is None:
            value = next(rest, None)
            if value is None or value.startswith("-"):
                return False
        try:
            parsed = settings.get("type", str)(value)
        except MamError:
            return False
        if action == "append":
            parsed = [*(getattr(self.options, target) or []), parsed]
        setattr(self.options, target, parsed)
        self._required.discard(target)
        return True

    def _parse_words(self, words: list[str]) -> bool:
        if not words:
            return True
        if self._word is None:
            return False
        target, number = self._word
        if number == "?" and len(words) > 1:
            return False
        setattr(self.options, target, words if number == "*" else words[0])
        return True
