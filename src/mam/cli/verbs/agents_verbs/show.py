"""Print the record of a session.

If the session is not live, the exit code is 1 and stderr has the reason; mam still prints an old record.
"""

from __future__ import annotations

from mam.agents.lookup import LIVE, require_live
from mam.cli.render.streams import print_json, say
from mam.cli.verbs.agents_verbs.common import add_agent_arguments, directory_of, look_up

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    add_agent_arguments(parser)


def run(options: Options) -> int:
    name, answer = look_up(directory_of(options), options)
    if answer.record is None:
        require_live(answer, name)
    else:
        print_json(answer.record.to_json())
    if answer.kind == LIVE:
        return 0
    say(f"{name} is not live: {answer.reason}")
    return 1
