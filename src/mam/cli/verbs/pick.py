"""Claim the next job of a label; prints its id, or exits 3.

The claim is believed for the job's own time limit unless --lease says otherwise; `heartbeat` renews it. A session that
`mam agents start` began claims as itself: when a newer generation of it begins, the job is pending again, and the older
one is refused (exit 4).

  job=$(mam pick --agent-session tmux:claude) && mam get "$job"
  claim=$(mam pick -s tmux:claude --export) && export $claim && work && mam complete
"""

from __future__ import annotations

import os

from mam.cli.args.options import registry_of
from mam.cli.render.streams import print_job, print_row, say
from mam.errors import BadInput, NothingToPick
from mam.util.human_time import parse_duration, parse_lease_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser
    from mam.registry import Registry


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--agent-session", "-s", metavar="LABEL", help="whose jobs")
    parser.add_argument("--lease", type=parse_lease_seconds, metavar="S", help="how long the claim shall be believed")
    parser.add_argument("--owner", metavar="O", help="who holds it; default: user@host:process")
    parser.add_argument("--wait", type=parse_duration, metavar="S", default=0.0, help="wait this long for one to come")
    parser.add_argument("--agent-id", metavar="ID", help="the session that claims; default: MAM_AGENT_ID")
    parser.add_argument("--generation", metavar="G", help="this life of the session; default: MAM_GENERATION")
    parser.add_argument(
        "--export", action="store_true", help="print MAM_JOB_ID=… MAM_ATTEMPT=… MAM_CLAIM=… for the shell"
    )


def run(options: Options) -> int:
    if options.agent_session is None:
        raise BadInput(why="whose jobs? Give the label: --agent-session LABEL, or -s")
    session = _session(options.agent_id, options.generation)
    registry = registry_of(options)
    if session is not None:
        _note_store(options, registry, *session)
    owner = options.owner if options.owner is not None else _owner()
    job = registry.pick(
        options.agent_session, owner=owner, lease_seconds=options.lease, wait=options.wait, session=session
    )
    if job is None:
        from mam.cli.render.claim_hint import claim_hint

        raise NothingToPick(label=options.agent_session, why=claim_hint(registry, options.agent_session))
    if options.export:
        print_row(f"MAM_JOB_ID={job.job_id} MAM_ATTEMPT={job.attempt} MAM_CLAIM={job.claim_id}")
    else:
        print_job(job, as_json=options.json, line=job.job_id)
    return 0


def _session(agent_id: str | None, generation: str | None) -> tuple[str, str] | None:
    """Who was named, else the session this process runs in. MAM_AGENT_ID alone names an agent, and no life of it."""
    own = (os.environ.get("MAM_AGENT_ID") or None, os.environ.get("MAM_GENERATION") or None)
    if agent_id is None and generation is None and None in own:
        return None
    agent_id = own[0] if agent_id is None else agent_id
    generation = own[1] if generation is None else generation
    if agent_id is None or generation is None:
        missing = "--agent-id" if agent_id is None else "--generation"
        raise BadInput(why=f"a session is named by --agent-id and --generation; {missing} is missing")
    from mam.jobs.input_rules import check_session_id

    return check_session_id("the id of an agent", agent_id), check_session_id("a generation", generation)


def _note_store(options: Options, registry: Registry, agent_id: str, generation: str) -> None:
    """So that a later generation finds this store, and what is claimed here now."""
    from mam.agents.generations import note_store
    from mam.agents.open_directory import open_directory

    problem = note_store(
        open_directory(options.store, options.registry_dir), agent_id, generation, registry.store.address
    )
    if problem is not None:
        say(f"{problem} A later generation will learn of this claim only when it claims here itself.")


def _owner() -> str:
    """The process that asked is gone in a moment; its parent is who will do the work."""
    from pwd import getpwuid

    try:
        user = getpwuid(os.geteuid()).pw_name
    except KeyError:
        user = str(os.geteuid())
    return f"{user}@{os.uname().nodename}:{os.getppid()}"
