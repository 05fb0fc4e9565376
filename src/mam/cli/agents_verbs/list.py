"""All records, one line each: id, name, state, tmux session, agent, and until when it holds or why it does not."""

from __future__ import annotations

from mam.agents.answer import LIVE, judged
from mam.cli.agents_verbs.common import directory_of
from mam.cli.output import person_reads, put, put_json_array, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.agents.answer import Answer, Look
    from mam.agents.record import Json
    from mam.cli.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--live", action="store_true", help="only those whose lease holds")


def run(options: Options) -> int:
    directory = directory_of(options)
    now = directory.clock.now()
    rows = [(look, judged(look, now)) for look in directory.looks()]
    if options.live:
        rows = [(look, answer) for look, answer in rows if answer.kind == LIVE]
    if options.json:
        put_json_array(_value(look, answer) for look, answer in rows)
        return 0
    lines = [(look.agent_id, *_columns(answer)) for look, answer in rows]
    if not person_reads():
        for line in lines:
            put(*line)
    elif lines:
        from mam.cli.agents_verbs.table import put_table

        put_table(
            ("NAME", "STATE", "TMUX SESSION", "AGENT", "UNTIL", "ID"), [(*line[1:], line[0][:8]) for line in lines]
        )
    else:
        say("no session is written down; `mam agents start NAME -- COMMAND` starts one")
    return 0


def _value(look: Look, answer: Answer) -> Json:
    record = None if look.record is None else look.record.to_json()
    return {"agent_id": look.agent_id, "answer": answer.kind, "reason": answer.reason, "record": record}


def _columns(answer: Answer) -> tuple[str, str, str, str, str]:
    record = answer.record
    if record is None:
        return "-", answer.kind, "-", "-", answer.reason
    until = answer.reason if record.liveness is None else record.liveness.lease_expires_at
    session = record.terminal.current_session_name or record.terminal.last_session_name
    return record.agent_name, answer.kind, session, record.identity.tool, until
