"""Print the skill."""

from __future__ import annotations

from mam.cli.render.streams import put_exactly, put_json
from mam.skill import NAME, skill_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser


def add_arguments(_parser: Parser) -> None:
    """None of its own."""


def run(options: Options) -> int:
    if options.json:
        put_json({"name": NAME, "text": skill_text()})
    else:
        put_exactly(skill_text())
    return 0
