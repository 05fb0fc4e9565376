"""Applies the changes of one job, and notes who did and where. For the command and the page."""

from __future__ import annotations

import os

from mam.errors import MamError, Refused
from mam.jobs.changed_files import changes_of
from mam.util.notices import warn
from mam.work.git.apply import PRESENT, CannotApply, apply_changes, checkout
from mam.work.git.changes import AFTER, commit_leftovers, read_ref
from mam.work.git.command import GitFailed, at
from mam.work.state_dirs import work_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mam.jobs.changed_files import Changes
    from mam.jobs.record import Job
    from mam.registry import Registry
    from mam.work.git.apply import Applied


def apply_job(registry: Registry, job: Job, directories: Sequence[str | None], *, by: str, staged: bool) -> Applied:
    """To the checkout of the first of these directories that is in one of the job's repository. Refused in one sentence
    before anything is changed."""
    changes = applicable(job)
    try:
        commit_leftovers(job, work_directory(registry.store.address))
        commit = read_ref(at(changes.repository), job.job_id, AFTER) or changes.after
        if commit is None or commit == changes.before:
            raise Refused(why=f"Job {job.job_id} changed nothing, so there is nothing to apply.")
        applied = apply_changes(job, commit, _target(directories, changes), staged=staged)
    except CannotApply as why:
        raise Refused(why=f"Job {job.job_id} was not applied, and nothing changed: {why}.") from None
    except GitFailed as failed:
        raise Refused(why=f"Job {job.job_id} was not applied: {failed}.") from None
    if applied.how != PRESENT or job.applied is None:
        _note(registry, job, applied, by)
    return applied


def applicable(job: Job) -> Changes:
    """The changes of a job that can be applied on this host."""
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


def _target(directories: Sequence[str | None], changes: Changes) -> str:
    """The checkout to apply to; never the job's own worktree."""
    for directory in directories:
        top = None if directory is None else checkout(directory, changes.repository)
        if top is not None and os.path.realpath(top) != os.path.realpath(changes.directory):
            return top
    raise CannotApply(
        f"no checkout of its repository is here; `git fetch {changes.repository} {changes.branch}` gets its branch"
    )


def _note(registry: Registry, job: Job, applied: Applied, by: str) -> None:
    """The changes are in the checkout already, so a store that cannot be written is reported and no error."""
    facts = {"how": applied.how, "commit": applied.commit, "branch": applied.branch, "directory": applied.directory}
    try:
        registry.mark_applied(job.job_id, by=by, facts=facts)
    except MamError as error:
        warn("mam.apply", f"the job could not note it: {error}")
