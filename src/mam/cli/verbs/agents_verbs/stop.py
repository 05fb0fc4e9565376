"""End a session; prints the agent's id.

Its record stays, as stopped, so that `restart` can start it anew; --retire makes that the end. A session that cannot
be reached is not said to be over.
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
    parser.add_argument("--generation", metavar="G", help="only if it is still this generation (exit 4 if not)")
    parser.add_argument("--reason", metavar="TEXT", default="operator_stop", help="kept in the record")
    parser.add_argument("--retire", action="store_true", help="and never start it again")


def run(options: Options) -> int:
    if not options.reason.strip() or not options.reason.isprintable():
        raise BadInput(why="--reason is one line that says something")
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
