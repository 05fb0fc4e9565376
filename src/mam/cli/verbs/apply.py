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
from mam.errors import MamError, Refused
from mam.jobs.changed_files import changes_of
from mam.machine.person import user_at_host
from mam.work.git.apply import PRESENT, STAGED, Applied, CannotApply, apply_changes, checkout
from mam.work.git.changes import AFTER, commit_leftovers, read_ref
from mam.work.git.command import GitFailed, at
from mam.work.state_dirs import work_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser
    from mam.jobs.changed_files import Changes
    from mam.jobs.record import Job
    from mam.registry import Registry


def add_arguments(parser: Parser) -> None:
    add_job(parser)
    parser.add_argument("--patch", action="store_true", help="stage the changes without a commit")


def run(options: Options) -> int:
    if os.environ.get("MAM_SOCKET"):
        raise Refused(why="`mam apply` does not work inside a job: only a person applies changes.")
    registry = registry_of(options)
    job = registry.get(named_job(options))
    changes = _applicable(job)
    try:
        commit_leftovers(job, work_directory(registry.store.address))
        commit = read_ref(at(changes.repository), job.job_id, AFTER) or changes.after
        if commit is None or commit == changes.before:
            raise Refused(why=f"Job {job.job_id} changed nothing, so there is nothing to apply.")
        applied = apply_changes(job, commit, _target(job, changes), staged=options.patch)
    except CannotApply as why:
        raise Refused(why=f"Job {job.job_id} was not applied, and nothing changed: {why}.") from None
    except GitFailed as failed:
        raise Refused(why=f"Job {job.job_id} was not applied: {failed}.") from None
    if applied.how != PRESENT or job.applied is None:
        _note(registry, job, applied)
    say(_sentence(job, applied))
    if options.json:
        print_json({"job_id": job.job_id, **applied.as_dict()})
    else:
        print_row(applied.commit)
    return 0


def _applicable(job: Job) -> Changes:
    changes, host = changes_of(job), (job.run or {}).get("host")
    if not job.status.ended:
        raise Refused(why=f"Job {job.job_id} is {job.status}; `mam wait {job.job_id[:8]}` waits for its end.")
    if changes is None:
        raise Refused(why=f"Job {job.job_id} did not run in a git repository, so there is nothing to apply.")
    if changes.shared:
        raise Refused(why=f"Job {job.job_id} worked in {changes.directory} itself: its changes are there already.")
    if host != os.uname().nodename or not os.path.isdir(changes.repository):
        raise Refused(why=f"The changes of job {job.job_id} are in {changes.repository} on {host}; apply them there.")
    return changes


def _target(job: Job, changes: Changes) -> str:
    """The checkout to apply to; never the job's own worktree."""
    for directory in (os.getcwd(), job.workdir):
        top = None if directory is None else checkout(directory, changes.repository)
        if top is not None and os.path.realpath(top) != os.path.realpath(changes.directory):
            return top
    raise CannotApply(
        f"no checkout of its repository is here; `git fetch {changes.repository} {changes.branch}` gets its branch"
    )


def _note(registry: Registry, job: Job, applied: Applied) -> None:
    """The changes are in the checkout already, so a store that cannot be written is reported and no error."""
    facts = {"how": applied.how, "commit": applied.commit, "branch": applied.branch, "directory": applied.directory}
    try:
        registry.mark_applied(job.job_id, by=user_at_host(), facts=facts)
    except MamError as error:
        say(f"the job could not note it: {error}")


def _sentence(job: Job, applied: Applied) -> str:
    short, branch = job.job_id[:8], applied.branch
    if applied.how == PRESENT:
        return f"{branch} contains the changes of {short} already"
    if applied.how == STAGED:
        return f"the changes of {short} are staged on {branch} in {applied.directory}; `git commit` is next"
    return f"{branch} in {applied.directory} has the changes of {short} now ({applied.how})"
