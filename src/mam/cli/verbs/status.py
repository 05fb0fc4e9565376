"""Print a job's status, or set it.

`--set running` claims the job, `completed` ends it and `pending` releases it. mam rejects `--set waiting`. Prefer
`complete`, `fail`, `release` and `cancel`, which accept a result or a reason. `--set completed` ends the job also if an
artifact is missing, and names it on stderr.
"""

from __future__ import annotations

from mam.cli.args.options import add_attempt, add_job, fence_of, job_registry, named_job, registry_of
from mam.cli.render.streams import print_json, print_row, say
from mam.cli.send_event import add_broker, deliver
from mam.errors import BadInput
from mam.jobs.status import COMPLETED, parse_status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser
    from mam.jobs.record import Job


def add_arguments(parser: Parser) -> None:
    add_job(parser)
    parser.add_argument("--set", metavar="WORD", help="pending, running, completed, error or cancelled")
    add_attempt(parser)
    add_broker(parser)


def run(options: Options) -> int:
    name = named_job(options)
    if options.attempt is not None and options.set is None:
        raise BadInput(why="--attempt needs --set; without it mam writes nothing")
    word = None if options.set is None else parse_status(options.set)
    if word is None:
        job = job_registry(options).get(name)
    else:
        registry = registry_of(options)
        job = registry.set_status(name, word, **fence_of(options.attempt, registry, name))
        if word is COMPLETED:
            _report_missing_artifacts(job)
    if options.json:
        print_json({"job_id": job.job_id, "status": job.status})
    else:
        print_row(job.status)
    if word is not None:
        deliver(options, registry, job)
    return 0


def _report_missing_artifacts(job: Job) -> None:
    if job.expected_artifacts and job.status is COMPLETED:
        from mam.artifacts import missing_artifacts

        for missing in missing_artifacts(job):
            say(f"the job is completed, but {missing.facts['artifact']} {missing.facts['problem']}")
