"""Type a text into a session, once and whole, and submit it; prints the agent's id.

Control characters are removed, everything else arrives byte for byte. Nothing is sent to a pane whose program has
ended, that is in copy mode, that is another generation's, that shows a question, or where a person has typed within
the last 30 seconds. With --key a text is sent at most once, however often this is repeated.

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
    parser.add_argument("words", nargs="*", metavar="AGENT [TEXT]", help="whom, and what")
    parser.add_argument("--id", metavar="ID", help="its id, and nothing else")
    parser.add_argument("--name", metavar="NAME", help="its name, and nothing else")
    parser.add_argument("--session", metavar="S", help="the tmux session it runs in")
    parser.add_argument("--file", metavar="F", help="the text is in this file; - is stdin")
    parser.add_argument("--key", metavar="K", help="a name for this text, so that it is sent once")
    parser.add_argument("--generation", metavar="G", help="only if it is still this generation (exit 4 if not)")
    parser.add_argument("--agent-def-dir", metavar="DIR", help="where the agent is defined, if the record is wrong")


def run(options: Options) -> int:
    text = _text(options)
    if options.key is not None and (not options.key.strip() or len(options.key) > 200):
        raise BadInput(why="--key is a short name for the text")
    name, answer = look_up(directory_of(options), options)
    record = require_live(answer, name)
    if options.generation is not None and options.generation != record.generation_id:
        raise GenerationLost(agent=record.agent_id, owner=record.generation_id, generation=options.generation[:80])
    sent = send(check_target(record, options.agent_def_dir), text, options.key)
    if not sent:
        say(f"a text with the key {options.key} has been sent before; nothing was sent now")
    if options.json:
        print_json({"agent_id": record.agent_id, "generation_id": record.generation_id, "sent": sent})
    else:
        print_row(record.agent_id)
    return 0


def _text(options: Options) -> str:
    """Whom stands first, unless an option says so."""
    words: list[str] = list(options.words)
    named = any(given is not None for given in (options.id, options.name, options.session))
    options.word = None if named or not words else words.pop(0)
    if options.file is not None:
        if words:
            raise BadInput(why="give the text, or --file, and not both")
        return _content(options.file)
    if len(words) != 1:
        raise BadInput(why="`mam agents send AGENT TEXT`; a text with spaces is put in quotes")
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
