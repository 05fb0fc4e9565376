"""Prepares the directory in which a job runs: its own `workdir`, a fresh directory, or a git worktree."""

from __future__ import annotations

import os
import stat

from mam.errors import MachineUnfit, StoreUnavailable, WorkDirMissing, WorkDirUnusable
from mam.util.frozen import Frozen
from mam.work.host_checks import is_machine_error, reports_shortage
from mam.work.job_dir import JobDirectory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from mam.jobs.record import Job


class WorkDir(Frozen):
    path: str
    """The agent's working directory, with all links resolved."""
    kind: str
    branch: str | None = None
    note: str | None = None
    """A remark for the person who reads the record."""


def prepare_workdir(
    job: Job, work_directory: str, mapping: Mapping[str, str], repos: Mapping[str, str] | None = None
) -> WorkDir:
    """The directory of the job's next attempt; all attempts share it.

    WorkDirMissing: the path or the disk space is missing on this host; the job waits for it. WorkDirUnusable: waiting
    would not help. MachineUnfit: no job could run here now.
    """
    from mam.work.git.command import GitFailed

    try:
        if job.workspace == "workdir":
            return WorkDir(path=source_directory(job, mapping), kind="workdir", note=_note(job))
        job_dir = JobDirectory(work_directory, job.workspace_id)
        job_dir.make()
        if job.workspace == "fresh":
            return _fresh(job_dir)
        from mam.work.git.worktrees import prepare_worktree

        return prepare_worktree(job, job_dir, mapping, repos or {})
    except OSError as error:
        unfit = is_machine_error(error, os.path.realpath(work_directory))
        raise (MachineUnfit if unfit else WorkDirUnusable)(job=job.job_id, why=_system_words(error)) from None
    except StoreUnavailable as error:
        why = str(error).rstrip(".")
        raise (MachineUnfit if reports_shortage(why) else WorkDirUnusable)(job=job.job_id, why=why) from None
    except GitFailed as error:
        # A smaller checkout may still fit, so only this job waits.
        kind = WorkDirMissing if error.reports_shortage() else WorkDirUnusable
        raise kind(job=job.job_id, why=str(error).rstrip(".")) from None


def source_directory(job: Job, mapping: Mapping[str, str]) -> str:
    """The job's `workdir`, as a path of this host."""
    if job.workdir is None:
        return os.getcwd()  # only an old record names none; it means the worker's directory
    path = local_path(job, mapping)
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise WorkDirMissing(job=job.job_id, why=_why_missing(job, path)) from None
    except ValueError:
        raise WorkDirUnusable(job=job.job_id, why=f"{path!a} is not a path") from None
    if not stat.S_ISDIR(found.st_mode):
        raise WorkDirUnusable(job=job.job_id, why=f"{path} is not a directory")
    if not os.access(path, os.R_OK | os.X_OK):
        raise WorkDirUnusable(job=job.job_id, why=f"{path} is not accessible to this user")
    real = os.path.realpath(path)
    if job.parent_id is not None and path == job.workdir and real != path:
        # The parent's agent may have created the link after mam had checked the directory.
        raise WorkDirUnusable(
            job=job.job_id, why=f"its directory {path} has become a link, which is not allowed for children"
        )
    return real


def local_path(job: Job, mapping: Mapping[str, str]) -> str:
    """Maps paths of other hosts by the longest matching prefix of whole names; paths of this host are not mapped."""
    path = job.workdir or ""
    if not os.path.isabs(path) or ".." in path.split("/"):
        raise WorkDirUnusable(job=job.job_id, why=f"its workdir {path!a} is not an absolute path without ..")
    path = os.path.normpath(path)
    if _is_of_this_host(job):
        return path
    for remote in sorted(mapping, key=len, reverse=True):
        if path == remote.rstrip("/") or path.startswith(f"{remote.rstrip('/')}/"):
            return os.path.normpath(os.path.expanduser(mapping[remote]) + path[len(remote.rstrip("/")) :])
    return path


def _is_of_this_host(job: Job) -> bool:
    return job.origin_host is None or job.origin_host == os.uname().nodename


def _why_missing(job: Job, path: str) -> str:
    if _is_of_this_host(job):
        return f"its directory {path} is not there"
    mapped = "" if path == job.workdir else f" (here {path})"
    return (
        f"{job.workdir}{mapped} is not there on {os.uname().nodename}; it was registered on {job.origin_host}. "
        f"[workdirs] in config.toml maps paths of other hosts, or a worker on {job.origin_host} takes it"
    )


def _note(job: Job) -> str | None:
    return "the record names no directory; it ran in the worker's own" if job.workdir is None else None


def _fresh(job_dir: JobDirectory) -> WorkDir:
    """Made once: later attempts continue with its content."""
    try:
        os.mkdir(job_dir.fresh, 0o700)
    except FileExistsError:
        if not stat.S_ISDIR(os.lstat(job_dir.fresh).st_mode):
            raise WorkDirUnusable(job=job_dir.job_id, why=f"{job_dir.fresh} is not a directory any more") from None
    return WorkDir(path=job_dir.fresh, kind="fresh")


def _system_words(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error)
