"""Claim the next job of a label; print its id.

The exit code is 3 if no job can be claimed. The lease is the job's own timeout, or --lease; `mam heartbeat` renews it.

A command behind -- runs with the claim in its environment (MAM_JOB_ID, MAM_ATTEMPT, MAM_CLAIM), so that `mam get`,
`mam publish` and `mam complete` need no arguments. The command replaces this process; your shell stays unchanged.

  mam pick -s LABEL -- sh -c './work && mam complete'
  job=$(mam pick -s LABEL) && mam get "$job"
  claim=$(mam pick -s LABEL --export) && env $claim ./work

Do not `export $claim` in an interactive shell: later commands would still use that job.

A session of `mam agents start` claims for itself. When a newer generation of the session starts, the job returns to
pending, and mam rejects writes of the older generation (exit 4).
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
    from mam.jobs.record import Job
    from mam.registry import Registry


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--label", "--agent-session", "-s", metavar="LABEL", help="the label of the job (required)")
    parser.add_argument("--lease", type=parse_lease_seconds, metavar="S", help="the length of the lease")
    parser.add_argument("--owner", metavar="O", help="the owner of the claim; default: user@host:process")
    parser.add_argument("--wait", type=parse_duration, metavar="S", default=0.0, help="wait up to this time for a job")
    parser.add_argument("--agent-id", metavar="ID", help="the id of the session that claims; default: MAM_AGENT_ID")
    parser.add_argument("--generation", metavar="G", help="the generation of that session; default: MAM_GENERATION")
    parser.add_argument("--export", action="store_true", help="print MAM_JOB_ID=… MAM_ATTEMPT=… MAM_CLAIM=… for `env`")
    parser.takes_command = True


def run(options: Options) -> int:
    if options.label is None:
        raise BadInput(why="give the label: --label LABEL, or -s LABEL")
    if options.command is not None and (not options.command or options.export or options.json):
        raise BadInput(why="give a command behind --, without --export and --json: mam pick -s LABEL -- ./work")
    session = _session(options.agent_id, options.generation)
    registry = registry_of(options)
    if session is not None:
        _note_store(options, registry, *session)
    owner = options.owner if options.owner is not None else _owner(os.getpid() if options.command else os.getppid())
    job = registry.pick(options.label, owner=owner, lease_seconds=options.lease, wait=options.wait, session=session)
    if job is None:
        from mam.cli.render.claim_hint import claim_hint

        raise NothingToPick(label=options.label, why=claim_hint(registry, options.label))
    if options.command:
        return _run_command(options, registry, job)
    if options.export:
        print_row(f"MAM_JOB_ID={job.job_id} MAM_ATTEMPT={job.attempt} MAM_CLAIM={job.claim_id}")
    else:
        print_job(job, as_json=options.json, line=job.job_id)
    return 0


def _session(agent_id: str | None, generation: str | None) -> tuple[str, str] | None:
    """The session of the options, otherwise that of this process. MAM_AGENT_ID without a generation names none."""
    own = (os.environ.get("MAM_AGENT_ID") or None, os.environ.get("MAM_GENERATION") or None)
    if agent_id is None and generation is None and None in own:
        return None
    agent_id = own[0] if agent_id is None else agent_id
    generation = own[1] if generation is None else generation
    if agent_id is None or generation is None:
        missing = "--agent-id" if agent_id is None else "--generation"
        raise BadInput(why=f"a session needs --agent-id and --generation; {missing} is missing")
    from mam.jobs.input_rules import check_session_id

    return check_session_id("the id of an agent", agent_id), check_session_id("a generation", generation)


def _note_store(options: Options, registry: Registry, agent_id: str, generation: str) -> None:
    """Record this store for the session, so that a later generation finds the claims here."""
    from mam.agents.generations import note_store
    from mam.agents.open_directory import open_directory

    problem = note_store(
        open_directory(options.store, options.registry_dir), agent_id, generation, registry.store.address
    )
    if problem is not None:
        say(f"{problem} A later generation finds this claim only when it claims in this store.")


def _run_command(options: Options, registry: Registry, job: Job) -> int:
    """Replace this process by the command. If that fails, the job returns to pending."""
    claim = {"MAM_JOB_ID": job.job_id, "MAM_ATTEMPT": str(job.attempt), "MAM_CLAIM": str(job.claim_id)}
    env = {**os.environ, **claim}
    env.pop("MAM_SOCKET", None)  # the door of another job
    store = options.store if options.store is not None else options.registry_dir
    if store is not None:
        env["MAM_STORE"] = store
    try:
        os.execvpe(options.command[0], options.command, env)  # noqa: S606 - the user's own command, and no shell
    except (OSError, ValueError) as error:
        registry.release(job.job_id, attempt=job.attempt, claim_id=job.claim_id)
        problem = getattr(error, "strerror", None) or error
        raise BadInput(
            why=f"cannot run {options.command[0][:200]!r}: {problem}; job {job.job_id} is pending again"
        ) from None


def _owner(pid: int) -> str:
    """The process that will do the work: this one if it becomes the command, otherwise its parent."""
    from mam.machine.person import process_name

    return process_name(pid)
