"""Completion candidates for a command line.

The candidates come from the declarations of the verbs. Each line has a candidate, a tab and a description; `:files`
lets the shell complete file names. An error gives no candidates, because a message would disturb the command line.
"""

from __future__ import annotations

import os
import sys
from itertools import pairwise

from mam.cli.args.parser import Parser
from mam.errors import MamError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from types import ModuleType
    from typing import Any

    Candidate = tuple[str, str]
    Settings = dict[str, Any]

FILES = ":files"
_PATHS = ("FILE", "DIR", "PATH", "ADDRESS", "FOLDER")
_SHARED_OPTIONS = (
    ("--store", "the store"),
    ("--registry-dir", "a store of files"),
    ("--json", "JSON"),
)


class _Command:
    """The table of verbs. mam.__main__ is imported by name, because it is a layer above this one."""

    def __init__(self) -> None:
        from importlib import import_module

        main = import_module("mam.__main__")
        self.verbs: tuple[str, ...] = main.VERBS
        self.load: Callable[[str], ModuleType] = main.load


def print_candidates(words: list[str]) -> int:
    """`words` follow `mam`; the last one may be incomplete."""
    try:
        for name, about in candidates(words):
            if name.isprintable() and name:
                sys.stdout.write(f"{name}\t{about if about.isprintable() else ''}\n" if name != FILES else f"{FILES}\n")
    except (MamError, OSError):
        return 0
    return 0


def candidates(words: list[str]) -> Iterator[Candidate]:
    command = _Command()
    store_flags, rest = _leading_options(words)
    typed = rest[-1]
    if len(rest) == 1:
        yield from _matching(typed, _verbs(command) if not typed.startswith("-") else _SHARED_OPTIONS)
        return
    verb, *arguments = rest
    if verb == "help":
        yield from _matching(typed, _verbs(command))
    elif verb in command.verbs:
        yield from _arguments(verb, command.load(verb), arguments, store_flags)


def _leading_options(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """The shared options before the verb, and the rest."""
    store_flags: dict[str, str] = {}
    at = 0
    while at < len(words) - 1 and words[at].startswith("--"):
        if words[at] in ("--store", "--registry-dir") and at + 2 < len(words):
            store_flags[words[at]] = words[at + 1]
            at += 1
        at += 1
    return store_flags, words[at:]


def _verbs(command: _Command) -> Iterator[Candidate]:
    return ((verb, _summary(verb)) for verb in command.verbs)


def _summary(verb: str) -> str:
    """The first line of the verb's help, read from its file: importing forty modules takes too long."""
    path = os.path.join(os.path.dirname(os.path.dirname(__file__)), "verbs", f"{verb}.py")
    try:
        with open(path, encoding="utf-8") as file:
            return file.readline().strip().strip('"').rstrip(".")
    except OSError:
        return ""


def _arguments(
    verb: str, module: ModuleType, arguments: list[str], store_flags: Mapping[str, str]
) -> Iterator[Candidate]:
    parser = Parser(verb, "")
    module.add_arguments(parser)
    if parser.subverbs:
        if len(arguments) == 1:
            yield from _matching(arguments[0], ((name, "") for name in parser.subverbs))
            return
        if arguments[0] not in parser.subverbs:
            return
        verb = f"{verb} {arguments[0]}"
        module = __import__(parser.subverbs[arguments[0]], fromlist=["run"])
        parser = Parser(verb, "")
        module.add_arguments(parser)
        arguments = arguments[1:]
    yield from _parser_candidates(verb, parser, arguments, store_flags)


def _parser_candidates(
    verb: str, parser: Parser, arguments: list[str], store_flags: Mapping[str, str]
) -> Iterator[Candidate]:
    *before, typed = arguments
    if parser.takes_command and "--" in before:
        yield FILES, ""
        return
    options = {name: settings for names, settings in _declared(parser) for name in names if name.startswith("-")}
    options |= {name: {"help": about} for name, about in _SHARED_OPTIONS if name != "--json"}
    options["--json"] = {"help": "print JSON", "action": "store_true"}
    store_options = {**store_flags, **_store_options(before)}
    previous = before[-1] if before else ""
    if previous in options and options[previous].get("action") != "store_true":
        yield from _value_candidates(verb, previous, options[previous], typed, store_options)
    elif typed.startswith("-"):
        shown = [*options.items(), ("--help", {"help": "show the help of this verb"})]
        yield from _matching(typed, ((name, str(settings.get("help", ""))) for name, settings in shown))
    else:
        for names, settings in _declared(parser):
            if not names[0].startswith("-"):
                yield from _value_candidates(verb, names[0], settings, typed, store_options)


def _declared(parser: Parser) -> Iterator[tuple[tuple[str, ...], Settings]]:
    for group in (parser, *parser.groups):
        yield from group.arguments


def _store_options(before: list[str]) -> dict[str, str]:
    return {
        word: value
        for word, value in pairwise(before)
        if word in ("--store", "--registry-dir") and not value.startswith("-")
    }


def _value_candidates(
    verb: str, name: str, settings: Settings, typed: str, store_options: Mapping[str, str]
) -> Iterator[Candidate]:
    """Candidates for one argument."""
    from mam.cli.args import completion_values as values

    metavar = str(settings.get("metavar", ""))
    choices = settings.get("choices") or values.choices_for(name)
    if choices:
        yield from _matching(typed, ((str(choice), "") for choice in choices))
    elif name in ("--status", "--set"):
        yield from values.statuses(typed, several=name == "--status")
    elif "JOB" in metavar or "EVENT" in metavar:
        if "EVENT" in metavar:
            yield from _matching(typed, values.events())
        if "JOB" in metavar:
            yield from values.jobs(verb, typed, store_options)
    elif metavar == "LABEL":
        yield from _matching(typed, values.labels(store_options))
    elif name == "--agent":
        yield from _matching(typed, values.agents())
    elif metavar.startswith("KEY") and verb.startswith("config"):
        yield from _matching(typed, values.settings())
    elif metavar == "SHELL":
        yield from _matching(typed, (("bash", ""), ("zsh", ""), ("fish", "")))
    elif verb.startswith("agents ") and metavar.startswith(("NAME", "AGENT")):
        yield from _matching(typed, values.sessions())
    elif any(part in metavar for part in _PATHS) or name in ("--store", "--registry-dir"):
        yield FILES, ""


def _matching(typed: str, found: Iterable[Candidate]) -> Iterator[Candidate]:
    return ((name, about) for name, about in found if name.startswith(typed))
