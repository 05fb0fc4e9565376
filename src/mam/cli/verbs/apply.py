"""Apply the changes of a job to your checkout; print the commit.

mam takes the checkout of the current directory, otherwise that of the job's own directory. It tests the merge first:
with a conflict it changes nothing. Then it fast-forwards the branch that is checked out, or merges. Uncommitted changes
stay, unless the job changed the same files; then mam refuses. --patch stages the changes without a commit. The job
notes who applied it and where.

  mam apply JOB
  mam apply JOB --patch && git diff --cached
"""

from __future__ import annotations

import os

from mam.cli.args.options import add_job, named_job, registry_of
from mam.cli.render.streams import print_json, print_row, say
from mam.errors import Refused
from mam.machine.person import user_at_host
from mam.work.git.apply import PRESENT, STAGED
from mam.work.git.applying import apply_job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser
    from mam.jobs.record import Job
    from mam.work.git.apply import Applied


def add_arguments(parser: Parser) -> None:
    add_job(parser)
    parser.add_argument("--patch", action="store_true", help="stage the changes without a commit")


def run(options: Options) -> int:
    if os.environ.get("MAM_SOCKET"):
        raise Refused(why="`mam apply` does not work inside a job: only a person applies changes.")
    registry = registry_of(options)
    job = registry.get(named_job(options))
    directories = (os.getcwd(), job.workdir)
    applied = apply_job(registry, job, directories, by=user_at_host(), staged=options.patch)
    say(_sentence(job, applied))
    if options.json:
        print_json({"job_id": job.job_id, **applied.as_dict()})
    else:
        print_row(applied.commit)
    return 0


def _sentence(job: Job, applied: Applied) -> str:
    short, branch = job.job_id[:8], applied.branch
    if applied.how == PRESENT:
        return f"{branch} contains the changes of {short} already"
    if applied.how == STAGED:
        return f"the changes of {short} are staged on {branch} in {applied.directory}; `git commit` is next"
    return f"{branch} in {applied.directory} has the changes of {short} now ({applied.how})"
