"""Stop a session; print the agent's id.

The record stays with the state stopped, so that `restart` can start the session again; --retire prevents that. mam does
not mark a session as stopped that it cannot reach.
"""

from __future__ import annotations

from mam.agents import acts
from mam.agents.lookup import require_live
from mam.agents.stop import stop_session
from mam.cli.render.streams import print_json, print_row
from mam.cli.verbs.agents_verbs.common import add_agent_arguments, directory_of, look_up
from mam.errors import BadInput, GenerationLost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    add_agent_arguments(parser)
    parser.add_argument("--generation", metavar="G", help="stop only this generation (otherwise exit 4)")
    parser.add_argument("--reason", metavar="TEXT", default="operator_stop", help="the reason, stored in the record")
    parser.add_argument("--retire", action="store_true", help="never start it again")


def run(options: Options) -> int:
    if not options.reason.strip() or not options.reason.isprintable():
        raise BadInput(why="--reason takes one line of text")
    directory = directory_of(options)
    name, answer = look_up(directory, options)
    record = answer.record if answer.record is not None else require_live(answer, name)
    if options.generation is not None and options.generation != record.generation_id:
        raise GenerationLost(agent=record.agent_id, owner=record.generation_id, generation=options.generation[:80])
    stopped = stop_session(directory, record, options.reason.strip())
    if options.retire:
        stopped = (
            directory.change(record.agent_id, acts.retire(record.generation_id, options.reason.strip())) or stopped
        )
    if options.json:
        print_json(stopped.to_json())
    else:
        print_row(stopped.agent_id)
    return 0
