"""End a pause.

It ends the pause with exactly this agent and label; --all ends every pause. A job that waits for the reset of this
agent's usage limit becomes pending.
"""

from __future__ import annotations

from mam.cli.args.options import registry_of
from mam.cli.render.streams import print_json, say
from mam.cli.render.text import one_line
from mam.cli.verbs.pause import add_target, target
from mam.errors import BadInput, Refused
from mam.jobs.pause import Pause

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    add_target(parser)
    parser.add_argument("--all", action="store_true", help="end every pause")


def run(options: Options) -> int:
    registry = registry_of(options)
    agent, label = target(options)
    if options.all and (agent or label):
        raise BadInput(why="--all ends every pause; omit --agent and --label")
    wanted = registry.store.pauses() if options.all else [Pause(agent=agent, label=label)]
    ended = [one for one in wanted if registry.resume(one.agent, one.label)]
    if not ended and not options.all:
        others = "; ".join(one_line(one.scope) for one in registry.store.pauses())
        raise Refused(why=f"{wanted[0].scope} is not paused; {f'paused: {others}' if others else 'nothing is paused'}.")
    if options.json:
        print_json({"resumed": [{"agent": one.agent, "label": one.label} for one in ended]})
    else:
        for one in ended:
            say(f"resumed: {one_line(one.scope)}")
    return 0
