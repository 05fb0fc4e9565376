"""Explain a job's status, or print its brief.

mam explains why a job does not run, how it ended, or what its agent is doing and how mam knows it.

  mam explain JOB
  mam explain JOB --brief    # the exact text that the agent gets
"""

from __future__ import annotations

from mam.cli.args.options import add_job, job_registry, named_job, own_job, registry_of
from mam.cli.render.streams import print_json, print_row, print_text
from mam.jobs.question import open_questions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser
    from mam.jobs.question import Question
    from mam.jobs.record import Job

TMUX = "tmux:"


def add_arguments(parser: Parser) -> None:
    add_job(parser)
    parser.add_argument(
        "--brief", action="store_true", help="print the brief: the text that the agent gets about the job"
    )


def run(options: Options) -> int:
    if options.brief:
        return print_brief(options)
    registry = registry_of(options)
    job, sentences = registry.explain(named_job(options))
    sentences += _session(options, job)
    asked = open_questions(job) if job.questions else []
    if options.json:
        state = registry.state(job).to_json()
        shown = {"job_id": job.job_id, "status": job.status, "state": state, "why": sentences}
        print_json({**shown, "questions": [question.as_dict() for question in asked]})
        return 0
    print_row(f"Job {job.job_id} ({job.status})")
    for sentence in sentences:
        print_row(sentence)
    if asked:
        _print_questions(asked)
    return 0


def _print_questions(asked: list[Question]) -> None:
    """The whole question, so that a person does not answer its first line only."""
    from mam.cli.render.question import INDENT, WIDTH, whole_lines

    for question in asked:
        print_row(f"Question {question.number}:")
        for line in whole_lines(question, WIDTH):
            print_row("".join([INDENT, *(text for text, _ in line)]))


def _session(options: Options, job: Job) -> list[str]:
    """For a job of a live session: whether the session exists, and what it is doing."""
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
    rest = "" if state.state in ("done", "unknown") else " mam types nothing into it meanwhile."
    doing = _is(state.format_at(now_ms))
    return [f"It is for the live session {name} (`mam worker --in {name}`): {name} {doing}.{rest}"]


def _is(activity: str) -> str:
    return activity if activity.startswith("needs") else f"is {activity}"


def print_brief(options: Options) -> int:
    """Print the brief of the current attempt, or of the next one if the job is not running."""
    from mam.jobs.status import RUNNING
    from mam.work.brief import brief

    job = job_registry(options).get(own_job(options))
    if job.status is not RUNNING and not job.status.ended:
        job = job.replace(attempt=job.attempt + 1)
    text = brief(job, _session_workdir(job))
    if options.json:
        print_json({"job_id": job.job_id, "attempt": job.attempt, "agent": job.agent, "brief": text})
    else:
        print_text(text)
    return 0


def _session_workdir(job: Job) -> str | None:
    """The brief names the directory only for a job of a live session."""
    run = job.run or {}
    if "session" in run or (not run and job.agent_session.startswith(TMUX)):
        workdir = run.get("place") or job.workdir
        return workdir if isinstance(workdir, str) else None
    return None
