"""List the records of sessions.

Each line has the id, the name, the state of the record, the tmux session, the agent, the end of the lease or the
problem, and what the agent is doing.
"""

from __future__ import annotations

from mam.agents.activity import session_state
from mam.agents.lookup import LIVE, resolve_lookup
from mam.cli.render.streams import print_json_array, print_row, say, stdout_is_terminal
from mam.cli.verbs.agents_verbs.common import directory_of
from mam.util.clock import parse_time
from mam.util.human_time import format_age

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.agents.lookup import Lookup, Resolution
    from mam.agents.record import Json
    from mam.cli.args.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--live", action="store_true", help="only records with a valid lease")


def run(options: Options) -> int:
    directory = directory_of(options)
    now = directory.clock.now()
    rows = [(lookup, resolve_lookup(lookup, now)) for lookup in directory.read_all()]
    if options.live:
        rows = [(lookup, answer) for lookup, answer in rows if answer.kind == LIVE]
    if options.json:
        print_json_array(_value(lookup, answer, now.wall_ms) for lookup, answer in rows)
        return 0
    if not stdout_is_terminal():
        for lookup, answer in rows:
            print_row(lookup.agent_id, *_columns(answer), _activity(lookup, now.wall_ms))
    elif rows:
        from mam.cli.render.table import print_table

        headings = ("NAME", "RECORD", "TMUX SESSION", "AGENT", "HOLDS", "STATE", "ID")
        print_table(headings, [_table_row(lookup, answer, now.wall_ms) for lookup, answer in rows])
    else:
        say("no sessions; `mam agents start NAME -- COMMAND` starts one")
    return 0


def _value(lookup: Lookup, answer: Resolution, now_ms: int) -> Json:
    record = None if lookup.record is None else lookup.record.to_json()
    state = None if lookup.record is None else session_state(lookup.record, now_ms).to_json()
    return {
        "agent_id": lookup.agent_id, "answer": answer.kind, "reason": answer.reason, "state": state, "record": record
    }  # fmt: skip


def _activity(lookup: Lookup, now_ms: int) -> str:
    """Its screen is not looked at, since there may be many; `status` does that."""
    if lookup.record is None or not lookup.record.live:
        return "-"
    return session_state(lookup.record, now_ms).format_at(now_ms)


def _table_row(lookup: Lookup, answer: Resolution, now_ms: int) -> tuple[str, ...]:
    """What fits on a terminal: how long the lease holds, and the one word of what it does; `status` says the rest."""
    *named, until = _columns(answer)
    record = lookup.record
    if record is not None and record.liveness is not None:
        until = format_age(max(0, parse_time(record.liveness.lease_expires_at) - now_ms))
    doing = "-" if record is None or not record.live else session_state(record, now_ms).state
    return (*named, until, doing, lookup.agent_id[:8])


def _columns(answer: Resolution) -> tuple[str, str, str, str, str]:
    record = answer.record
    if record is None:
        return "-", answer.kind, "-", "-", answer.reason
    until = answer.reason if record.liveness is None else record.liveness.lease_expires_at
    session = record.terminal.current_session_name or record.terminal.last_session_name
    return record.agent_name, answer.kind, session, record.identity.tool, until
