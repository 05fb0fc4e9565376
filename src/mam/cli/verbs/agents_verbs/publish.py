"""Add a session to the directory; print its id and generation.

The record reserves the name while its lease is valid: mam rejects a record of another generation (exit 4). Of several
publishers, one succeeds and the others get exit 4 at once. Give --generation to resume a session; without it, mam
creates a new generation. Jobs that the previous generation had claimed can be claimed again at once; mam names the
stores that it could not reach.

  mam agents publish gpu --session gpu \\
      --manifest /home/me/gpu/manifest.json
  mam agents publish --record record.json
"""

from __future__ import annotations

import os
import socket
import sys

from mam.agents.acts import publish
from mam.agents.errors import InvalidAgentRecord
from mam.agents.lease import DEFAULT_SECONDS
from mam.agents.lookup import id_for_name
from mam.agents.names import canonical_name, check_agent_id
from mam.agents.open_directory import configured_prefix
from mam.agents.record import ACTIVE
from mam.agents.record_parser import Invalid, Malformed, Newer, parse_record, record_from
from mam.cli.render.streams import print_json, print_row
from mam.cli.verbs.agents_verbs.common import announce, directory_of
from mam.errors import BadInput
from mam.util.clock import iso_second
from mam.util.human_time import parse_lease_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.agents.port import Directory
    from mam.agents.record import AgentRecord, Json
    from mam.cli.args.parser import Options, Parser

LARGEST = 1024 * 1024


def add_arguments(parser: Parser) -> None:
    parser.add_argument("word", nargs="?", metavar="NAME", help="the agent's name")
    parser.add_argument("--id", metavar="ID", help="its id; default: derived from the name")
    parser.add_argument("--generation", metavar="G", help="the generation of the session; default: a new one")
    parser.add_argument("--session", metavar="S", help="the tmux session of the agent")
    parser.add_argument("--socket", metavar="PATH", help="the socket of the tmux server")
    parser.add_argument("--manifest", metavar="FILE", help="the manifest of the session; an absolute path")
    parser.add_argument("--agent", metavar="A", default="shell", help="the kind of agent (default shell)")
    parser.add_argument("--backend", metavar="B", default="tmux", help="the terminal backend (default tmux)")
    parser.add_argument("--agent-def-dir", metavar="DIR", help="the directory of the agent's definition")
    parser.add_argument("--lease", type=parse_lease_seconds, metavar="T", help="the length of the lease (default 24h)")
    parser.add_argument("--record", metavar="FILE", help="read a complete record from a file; - is stdin")


def run(options: Options) -> int:
    directory = directory_of(options)
    if options.record is not None:
        record = _record_from_file(options)
        act = publish(record, options.lease)
    else:
        record = _record_from_options(directory, options)
        act = publish(record, DEFAULT_SECONDS if options.lease is None else options.lease)
    published = directory.change(record.agent_id, act)
    assert published is not None
    announce(options, published)
    if options.json:
        print_json(published.to_json())
    else:
        print_row(published.agent_id, published.generation_id)
    return 0


def _record_from_options(directory: Directory, options: Options) -> AgentRecord:
    if options.word is None or options.session is None or options.manifest is None:
        raise BadInput(why="give NAME, --session and --manifest, or --record")
    name = canonical_name(options.word, configured_prefix())
    now = directory.clock.now().wall_ms
    value: Json = {
        "schema_version": 3,
        "agent_name": name,
        "agent_id": id_for_name(directory, name) if options.id is None else check_agent_id(options.id),
        "generation_id": directory.clock.new_id()
        if options.generation is None
        else check_agent_id(options.generation, "generation"),
        "lifecycle": {"state": ACTIVE, "relaunchable": False, "state_updated_at": iso_second(now)},
        "identity": {"backend": options.backend, "tool": options.agent},
        "runtime": {"manifest_path": options.manifest, "agent_def_dir": options.agent_def_dir},
        "terminal": {"current_session_name": options.session, "last_session_name": options.session},
        "liveness": {"published_at": iso_second(now), "lease_expires_at": iso_second(now + 60_000)},
        "mam": {"host": socket.gethostname(), "socket": options.socket or ""},
    }
    return _checked(lambda: record_from(value), name)


def _record_from_file(options: Options) -> AgentRecord:
    others = (options.word, options.id, options.generation, options.session, options.manifest)
    if any(other is not None for other in others):
        raise BadInput(why="--record is a complete record; it accepts only --lease")
    data = _content(options.record)
    record = _checked(lambda: parse_record(data), os.path.basename(options.record))
    return record.replace(agent_name=canonical_name(record.agent_name, configured_prefix()))


def _checked(make: Callable[[], AgentRecord], name: str) -> AgentRecord:
    try:
        return make()
    except (Invalid, Malformed, Newer) as error:
        raise InvalidAgentRecord(agent=name, problem=error) from None


def _content(file: str) -> bytes:
    if file == "-":
        data = sys.stdin.buffer.read(LARGEST + 1)
    else:
        try:
            with open(file, "rb") as opened:
                data = opened.read(LARGEST + 1)
        except (OSError, ValueError) as error:
            raise BadInput(why=f"--record {file[:200]!r}: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > LARGEST:
        raise BadInput(why=f"--record: a record has at most {LARGEST:,} bytes")
    return data
