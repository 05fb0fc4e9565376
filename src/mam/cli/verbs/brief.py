"""Print exactly what an agent is told about a job.

For a job that does not run now it is what the next attempt would be told.
"""

from __future__ import annotations

from mam.cli.args.options import add_job, job_registry, own_job
from mam.cli.render.streams import print_json, print_text
from mam.jobs.status import RUNNING
from mam.work.brief import brief

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser
    from mam.jobs.record import Job


def add_arguments(parser: Parser) -> None:
    add_job(parser, own=True)


def run(options: Options) -> int:
    job = job_registry(options).get(own_job(options))
    if job.status is not RUNNING and not job.status.ended:
        job = job.replace(attempt=job.attempt + 1)
    text = brief(job, _workdir(job))
    if options.json:
        print_json({"job_id": job.job_id, "attempt": job.attempt, "agent": job.agent, "brief": text})
    else:
        print_text(text)
    return 0


def _workdir(job: Job) -> str | None:
    """Of a job that a live session does, which is told where to work."""
    run = job.run or {}
    if "session" in run or (not run and job.agent_session.startswith("tmux:")):
        place = run.get("place") or job.workdir
        return place if isinstance(place, str) else None
    return None
