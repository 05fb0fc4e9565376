"""Print the result of a completed job.

In a pipe, the result is byte for byte; --json adds the job's id and status, and the host that ran it.
"""

from __future__ import annotations

from mam.cli.args.options import add_job, job_registry, named_job
from mam.cli.render.streams import print_json, print_text
from mam.errors import Refused
from mam.jobs.status import COMPLETED, in_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser
    from mam.jobs.record import Job


def add_arguments(parser: Parser) -> None:
    add_job(parser)


def run(options: Options) -> int:
    name = named_job(options)
    job = job_registry(options).get(name)
    if job.result is None:
        raise Refused(why=_why_none(job))
    if options.json:
        from mam.cli.render.changes import changes_json

        facts = {"job_id": job.job_id, "status": job.status, "checked": job.checked, "host": job.host}
        print_json({**facts, "result": job.result, "changes": changes_json(job)})
    else:
        print_text(job.result)
    return 0


def _why_none(job: Job) -> str:
    if job.status is COMPLETED:
        return f"Job {job.job_id} completed without a result; `mam complete --result` stores one."
    if job.status.ended:
        return f"Job {job.job_id} has no result: it {in_words(job.status)} ({job.reason or 'no reason given'})."
    return f"Job {job.job_id} is {job.status} and has no result yet; `mam wait {job.job_id[:8]}` waits for its end."
