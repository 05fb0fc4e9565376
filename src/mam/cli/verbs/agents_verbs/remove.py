"""Take one's own record away; prints its id. The record of another generation stays (exit 4)."""

from __future__ import annotations

from mam.agents.acts import remove
from mam.cli.render.streams import put, put_json
from mam.cli.verbs.agents_verbs.common import add_generation, add_whom, directory_of, known_id, own_generation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    add_whom(parser)
    add_generation(parser)


def run(options: Options) -> int:
    directory = directory_of(options)
    generation = own_generation(options)
    agent_id = known_id(directory, options)
    directory.change(agent_id, remove(generation))
    if options.json:
        put_json({"agent_id": agent_id, "removed": True})
    else:
        put(agent_id)
    return 0
