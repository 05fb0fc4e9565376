"""Print the skill."""

from __future__ import annotations

from mam.cli.render.streams import print_json, print_text
from mam.skill import NAME, skill_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser


def add_arguments(_parser: Parser) -> None:
    """No arguments of its own."""


def run(options: Options) -> int:
    if options.json:
        print_json({"name": NAME, "text": skill_text()})
    else:
        print_text(skill_text())
    return 0
