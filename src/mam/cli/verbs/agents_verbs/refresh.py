"""Renew the lease of your own record; print when it expires.

If the record belongs to another generation now, mam rejects this with exit 4: the session must stop acting.
"""

from __future__ import annotations

from mam.agents.acts import refresh
from mam.cli.render.streams import print_json, print_row
from mam.cli.verbs.agents_verbs.common import (
    add_agent_arguments,
    add_generation,
    agent_id_of,
    directory_of,
    own_generation,
)
from mam.util.human_time import parse_lease_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    add_agent_arguments(parser)
    add_generation(parser)
    parser.add_argument(
        "--lease", type=parse_lease_seconds, metavar="T", help="the length of the lease; default: as before"
    )


def run(options: Options) -> int:
    directory = directory_of(options)
    generation = own_generation(options)
    record = directory.change(agent_id_of(directory, options), refresh(generation, options.lease))
    assert record is not None
    assert record.liveness is not None
    if options.json:
        print_json(record.to_json())
    else:
        print_row(record.liveness.lease_expires_at)
    return 0
