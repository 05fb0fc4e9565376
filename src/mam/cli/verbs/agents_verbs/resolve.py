"""Print the id of the one live session that matches.

AGENT is a name, an id or a tmux session. If no live session matches, the exit code is 1 and stderr has the reason:
missing, malformed, invalid, newer, expired, stopped or misnamed. If several match, the exit code is 6 and stderr has
their ids. --json prints the same as `answer`.
"""

from __future__ import annotations

from mam.agents.lookup import AMBIGUOUS, LIVE, require_live
from mam.cli.render.streams import print_row
from mam.cli.verbs.agents_verbs.common import add_agent_arguments, directory_of, look_up, print_answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser

_CODES = {LIVE: 0, AMBIGUOUS: 6}


def add_arguments(parser: Parser) -> None:
    add_agent_arguments(parser)


def run(options: Options) -> int:
    name, answer = look_up(directory_of(options), options)
    if options.json:
        print_answer(answer)
        return _CODES.get(answer.kind, 1)
    print_row(require_live(answer, name).agent_id)
    return 0
