"""Compare the record, tmux, process, companion and jobs.

Each line has the id, the name, the record, tmux, the process, the companion, the state, the jobs, and every difference
between them. The state is what the agent is doing (working, needs permission, quiet, done, gone or unknown), and where
mam learned it: a hook, the process or the screen. mam never treats an unknown state as dead. Exit code 1: there is a
difference.
"""

from __future__ import annotations

from mam.agents.lookup import Lookup, require_live
from mam.agents.status import session_status, with_jobs
from mam.cli.render.streams import print_json_array, print_row, say, stdout_is_terminal
from mam.cli.verbs.agents_verbs.common import add_agent_arguments, directory_of, look_up

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.agents.record import Json
    from mam.agents.status import AgentStatus
    from mam.cli.args.parser import Options, Parser
    from mam.jobs.record import Job


def add_arguments(parser: Parser) -> None:
    add_agent_arguments(parser)


def run(options: Options) -> int:
    directory = directory_of(options)
    now = directory.clock.now()
    if any(given is not None for given in (options.word, options.id, options.name, options.session)):
        name, answer = look_up(directory, options)
        record = answer.record if answer.record is not None else require_live(answer, name)
        lookups = [Lookup(agent_id=record.agent_id, kind="found", record=record)]
    else:
        lookups = list(directory.read_all())
    running = _running(options)
    found = [with_jobs(session_status(lookup, now), running) for lookup in lookups]
    if options.json:
        print_json_array(_value(status) for status in found)
    elif stdout_is_terminal():
        _show(found, now.wall_ms)
    else:
        for status in found:
            print_row(status.agent_id, *_columns(status, now.wall_ms), "; ".join(status.drift) or "-")
    return 1 if any(status.drift for status in found) else 0


def _running(options: Options) -> list[Job] | None:
    """The running jobs; None if the store cannot be read."""
    from mam.cli.args.options import registry_of
    from mam.errors import MamError, StoreMissing
    from mam.jobs.status import RUNNING
    from mam.stores.port import Query

    try:
        return list(registry_of(options).select(Query(statuses=frozenset({RUNNING}))))
    except StoreMissing:
        return None
    except MamError as error:
        say(f"cannot read the jobs: {error}")
        return None


def _value(status: AgentStatus) -> Json:
    state = None if status.state is None else status.state.to_json()
    return {**status.as_dict(), "drift": list(status.drift), "state": state}


def _columns(status: AgentStatus, now_ms: int) -> tuple[str, ...]:
    doing = "-" if status.state is None else status.state.format_at(now_ms)
    return status.agent_name, status.record, status.tmux, status.process, status.companion, doing, _jobs(status)


def _show(found: list[AgentStatus], now_ms: int) -> None:
    if not found:
        say("no sessions; `mam agents start NAME -- COMMAND` starts one")
        return
    from mam.cli.render.table import print_table

    headings = ("NAME", "RECORD", "TMUX", "PROCESS", "COMPANION", "STATE", "JOBS", "ID")
    print_table(headings, [(*_columns(status, now_ms), status.agent_id[:8]) for status in found])
    for status in found:
        for drift in status.drift:
            say(f"{status.agent_name}: {drift}")


def _jobs(status: AgentStatus) -> str:
    if status.jobs is None:
        return "unknown"
    return ",".join(str(job["job_id"])[:8] for job in status.jobs) or "-"
