"""Remove your own record; print its id.

mam does not remove the record of another generation (exit 4).
"""

from __future__ import annotations

from mam.agents.acts import remove
from mam.cli.render.streams import print_json, print_row
from mam.cli.verbs.agents_verbs.common import (
    add_agent_arguments,
    add_generation,
    agent_id_of,
    directory_of,
    own_generation,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    add_agent_arguments(parser)
    add_generation(parser)


def run(options: Options) -> int:
    directory = directory_of(options)
    generation = own_generation(options)
    agent_id = agent_id_of(directory, options)
    directory.change(agent_id, remove(generation))
    if options.json:
        print_json({"agent_id": agent_id, "removed": True})
    else:
        print_row(agent_id)
    return 0
