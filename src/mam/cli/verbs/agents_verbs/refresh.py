"""Begin the lease of one's own record anew; prints until when it holds.

Refused with exit 4 when the record belongs to another generation by now: then stand down.
"""

from __future__ import annotations

from mam.agents.acts import refresh
from mam.cli.render.streams import put, put_json
from mam.cli.verbs.agents_verbs.common import add_generation, add_whom, directory_of, known_id, own_generation
from mam.util.human_time import parse_lease_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    add_whom(parser)
    add_generation(parser)
    parser.add_argument(
        "--lease", type=parse_lease_seconds, metavar="T", help="for how long; default: as long as before"
    )


def run(options: Options) -> int:
    directory = directory_of(options)
    generation = own_generation(options)
    record = directory.change(known_id(directory, options), refresh(generation, options.lease))
    assert record is not None
    assert record.liveness is not None
    if options.json:
        put_json(record.to_json())
    else:
        put(record.liveness.lease_expires_at)
    return 0
