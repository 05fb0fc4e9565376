"""Type a text into a session and submit it; print the agent's id.

mam removes control characters and sends everything else unchanged. It sends nothing if the program in the pane has
ended, the pane is in copy mode, belongs to another generation or shows a question, or a person has typed in it within
the last 30 seconds. With --key, mam sends a text at most once, however often you repeat the command.

  mam agents send claude "look at the failing test"
  mam agents send claude --file brief.md --key brief-17
"""

from __future__ import annotations

import sys

from mam.agents.control import check_target
from mam.agents.lookup import require_live
from mam.agents.send import LONGEST_TEXT, send
from mam.cli.render.streams import print_json, print_row, say
from mam.cli.verbs.agents_verbs.common import directory_of, look_up
from mam.errors import BadInput, GenerationLost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    parser.add_argument("words", nargs="*", metavar="AGENT [TEXT]", help="the agent and the text")
    parser.add_argument("--id", metavar="ID", help="the id of the agent")
    parser.add_argument("--name", metavar="NAME", help="the name of the agent")
    parser.add_argument("--session", metavar="S", help="the tmux session of the agent")
    parser.add_argument("--file", metavar="F", help="read the text from a file; - is stdin")
    parser.add_argument("--key", metavar="K", help="a key for this text, which mam then sends only once")
    parser.add_argument("--generation", metavar="G", help="send only to this generation (otherwise exit 4)")
    parser.add_argument(
        "--agent-def-dir", metavar="DIR", help="the directory of the agent's definition, if the record is wrong"
    )


def run(options: Options) -> int:
    text = _text(options)
    if options.key is not None and (not options.key.strip() or len(options.key) > 200):
        raise BadInput(why="--key takes 1 to 200 characters")
    name, answer = look_up(directory_of(options), options)
    record = require_live(answer, name)
    if options.generation is not None and options.generation != record.generation_id:
        raise GenerationLost(agent=record.agent_id, owner=record.generation_id, generation=options.generation[:80])
    sent = send(check_target(record, options.agent_def_dir), text, options.key)
    if not sent:
        say(f"a text with the key {options.key} was sent before; mam sent nothing")
    if options.json:
        print_json({"agent_id": record.agent_id, "generation_id": record.generation_id, "sent": sent})
    else:
        print_row(record.agent_id)
    return 0


def _text(options: Options) -> str:
    """The first word is the agent, unless an option names it."""
    words: list[str] = list(options.words)
    named = any(given is not None for given in (options.id, options.name, options.session))
    options.word = None if named or not words else words.pop(0)
    if options.file is not None:
        if words:
            raise BadInput(why="give TEXT or --file, not both")
        return _content(options.file)
    if len(words) != 1:
        raise BadInput(why="give an agent and a text in quotes: `mam agents send AGENT TEXT`")
    return words[0]


def _content(file: str) -> str:
    try:
        if file == "-":
            data = sys.stdin.buffer.read(LONGEST_TEXT + 1)
        else:
            with open(file, "rb") as opened:
                data = opened.read(LONGEST_TEXT + 1)
        return data.decode()
    except UnicodeDecodeError:
        raise BadInput(why=f"--file {file[:200]} is not UTF-8") from None
    except (OSError, ValueError) as error:
        raise BadInput(why=f"--file {file[:200]}: {getattr(error, 'strerror', None) or error}") from None
