"""Say why a job is not running, what became of it, or what its agent is doing and who says so."""

from __future__ import annotations

from mam.cli.args.options import add_job, named_job, registry_of
from mam.cli.render.streams import print_json, print_row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser
    from mam.jobs.record import Job

TMUX = "tmux:"


def add_arguments(parser: Parser) -> None:
    add_job(parser)


def run(options: Options) -> int:
    name = named_job(options)
    registry = registry_of(options)
    job, sentences = registry.explain(name)
    sentences += _session(options, job)
    if options.json:
        state = registry.state(job).to_json()
        print_json({"job_id": job.job_id, "status": job.status, "state": state, "why": sentences})
        return 0
    print_row(f"Job {job.job_id} ({job.status})")
    for sentence in sentences:
        print_row(sentence)
    return 0


def _session(options: Options, job: Job) -> list[str]:
    """Of a job that a live session is to do: whether there is one, and what it is doing."""
    if not job.agent_session.startswith(TMUX) or job.status not in ("pending", "waiting"):
        return []
    from mam.agents.activity import session_state
    from mam.agents.lookup import by_name, require_live
    from mam.agents.open_directory import open_directory
    from mam.errors import MamError

    name = job.agent_session.removeprefix(TMUX)
    try:
        directory = open_directory(options.store, options.registry_dir)
        record = require_live(by_name(directory, name), name)
    except MamError as error:
        return [f"It is for the live session {name}. {error}"]
    now_ms = directory.clock.now().wall_ms
    state = session_state(record, now_ms, check_screen=True)
    rest = "" if state.state in ("done", "unknown") else " Nothing is typed into it meanwhile."
    doing = _is(state.format_at(now_ms))
    return [f"It is for the live session {name} (`mam worker --in {name}`): {name} {doing}.{rest}"]


def _is(told: str) -> str:
    return told if told.startswith("needs") else f"is {told}"
