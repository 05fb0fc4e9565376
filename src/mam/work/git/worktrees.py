"""A git worktree and branch for one job, made so that the next try completes what a kill at any step leaves.

The plan (commit and branch) is on disk before git is called, so that a second try makes the same. mam discards only a
worktree that no agent has used. It continues any other one, and recreates it from its branch if a user removed it.
"""

from __future__ import annotations

import contextlib
import os
import re

from mam.errors import WorkDirMissing, WorkDirUnusable
from mam.jobs.input_rules import ID_PREFIX_SHOWN
from mam.work.git.command import LONG_SECONDS, Git, GitFailed, at, discover
from mam.work.job_dir import remove_tree
from mam.work.workdir import WorkDir, source_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mam.jobs.record import Job, Json
    from mam.work.job_dir import JobDirectory

MAKING, MADE, REMOVING = "making", "made", "removing"
_FIELDS = ("state", "repository", "git_directory", "branch", "base", "prefix")
_SLUG_LIMIT = 40
_WALK = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def prepare_worktree(job: Job, job_dir: JobDirectory, mapping: Mapping[str, str], repos: Mapping[str, str]) -> WorkDir:
    with job_dir.locked() as lock:
        plan = _checked(job_dir)
        if plan is not None and plan["state"] == REMOVING:
            from mam.work.cleanup import finish_removing

            finish_removing(job_dir, plan, lock)
            job_dir.make()
            plan = None
        if plan is None:
            if job.repository is not None and job.workdir is None:
                plan = _planned_upstream(job, repos, lock)
            else:
                plan = _planned(job, source_directory(job, mapping), lock)
            job_dir.write(plan)
        note = None
        if plan["state"] == MAKING or not os.path.lexists(job_dir.worktree):
            note = None if plan["state"] == MAKING else "its worktree was gone; mam recreated it from its branch"
            plan = _make(job_dir, plan, lock)
        path = _enter(job_dir, plan)
    return WorkDir(path=path, kind="worktree", branch=plan["branch"], note=note or _about_submodules(job_dir))


def read_plan(job_dir: JobDirectory) -> Json | None:
    """The plan of the worktree; None if there is none or it is damaged."""
    plan = {"git_directory": "", "artifacts": [], **(job_dir.read() or {})}
    if not isinstance(plan["artifacts"], list):
        return None
    texts = [plan.get(name) for name in _FIELDS] + plan["artifacts"]
    return plan if all(isinstance(text, str) for text in texts) else None


def _checked(job_dir: JobDirectory) -> Json | None:
    plan = read_plan(job_dir)
    if plan is None and os.path.lexists(job_dir.worktree):
        raise WorkDirUnusable(
            job=job_dir.job_id, why=f"the content of {job_dir.worktree} is unknown; mam left it unchanged"
        )
    return plan


def _planned(job: Job, source: str, lock: int) -> Json:
    git = discover(source, (lock,))
    repository = git.path("rev-parse", "--path-format=absolute", "--git-common-dir")
    top = git.path("rev-parse", "--show-toplevel")
    prefix = git.path("rev-parse", "--show-prefix")
    if os.path.join(top, prefix).rstrip("/") != source:
        raise GitFailed(f"{source} is not in the working tree of its repository")
    try:
        start = git.path("rev-parse", "--verify", "--quiet", f"{_start(job)}^{{commit}}")
    except GitFailed:
        raise GitFailed(f"the repository {top} has no commit yet, so nothing can be made from it") from None
    return _new_plan(job, at(repository, keep_open=(lock,)), repository, start, prefix)


def _planned_upstream(job: Job, repos: Mapping[str, str], lock: int) -> Json:
    """For a job that names a repository: from its branch, as it is now."""
    from mam.work.git.mirrors import fetch_mirror

    upstream = fetch_mirror(job, repos, (lock,))
    return _new_plan(job, at(upstream.work, keep_open=(lock,)), upstream.work, upstream.base, "")


def _new_plan(job: Job, git: Git, repository: str, start: str, prefix: str) -> Json:
    branch, base = (_free_branch(git, job), start) if job.continues is None else _continued_branch(git, job)
    return {
        "state": MAKING, "repository": repository, "branch": branch, "base": base, "prefix": prefix,
        "artifacts": job.expected_artifacts,
    }  # fmt: skip


def _continued_branch(git: Git, job: Job) -> tuple[str, str]:
    """The branch of the conversation, whose worktree was removed. If the branch is gone too, mam's own ref still has
    its commits."""
    from mam.work.git.changes import AFTER, read_ref

    conversation = job.conversation or {}
    branch, earlier = conversation.get("branch"), conversation.get("job")
    name = branch if isinstance(branch, str) and branch.startswith("mam/") else ""
    if not git.succeeds("check-ref-format", "--branch", name):
        raise GitFailed("the record does not name the branch of the conversation")
    base = branch_commit(git, name) or (read_ref(git, earlier, AFTER) if isinstance(earlier, str) else None)
    if base is None:
        raise GitFailed(f"the branch {name} of the conversation is gone")
    return name, base


def _start(job: Job) -> str:
    """The branch that the job names, otherwise the HEAD of its directory."""
    branch = (job.repository or {}).get("branch")
    return f"refs/heads/{branch}" if isinstance(branch, str) else "HEAD"


def _free_branch(git: Git, job: Job) -> str:
    """Another store may have a job whose id begins the same."""
    start = f"mam/{slug(job.prompt)}"
    names = [f"{start}-{job.job_id[:ID_PREFIX_SHOWN]}", f"{start}-{job.job_id}"]
    names += [f"{start}-{job.job_id}-{number}" for number in range(2, 10)]
    for name in names:
        if branch_commit(git, name) is None:
            return name
    raise GitFailed(f"the branches {names[0]} to {names[-1]} exist already")


def slug(prompt: str) -> str:
    """The first words of a prompt, as a branch name."""
    words = re.findall(r"[a-z0-9]+", prompt[:1000].lower())
    text = ""
    for word in words:
        if len(text) + len(word) >= _SLUG_LIMIT:
            break
        text += f"-{word}" if text else word
    return text or (words[0][:_SLUG_LIMIT] if words else "job")


def branch_commit(git: Git, branch: str) -> str | None:
    try:
        return git.path("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}^{{commit}}")
    except GitFailed:
        return None


def _make(job_dir: JobDirectory, plan: Json, lock: int) -> Json:
    _check_repository(job_dir, plan)
    with repository_lock(job_dir, plan) as alone:
        _add(job_dir, plan, at(plan["repository"], keep_open=(lock, alone)))
    directory = _checked_out(job_dir, lock)
    plan = {**plan, "state": MADE, "git_directory": directory}
    job_dir.write(plan)
    return plan


def _checked_out(job_dir: JobDirectory, lock: int) -> str:
    """Checks out the files; returns the worktree's git directory. A separate step, since git reads other settings in a
    worktree than in its repository: a file may be included for one branch. An incomplete checkout is removed, to free
    the disk."""
    try:
        directory = discover(job_dir.worktree).path("rev-parse", "--absolute-git-dir")
        at(directory, job_dir.worktree, (lock,)).text("reset", "--hard", "--quiet", seconds=LONG_SECONDS)
    except GitFailed:
        remove_tree(job_dir.worktree)
        raise
    return directory


def _add(job_dir: JobDirectory, plan: Json, git: Git) -> None:
    remove_tree(job_dir.worktree)
    forget_worktree(git, job_dir)
    held = branch_commit(git, plan["branch"])
    if plan["state"] == MAKING and held not in (None, plan["base"]):
        raise GitFailed(f"another process created the branch {plan['branch']} meanwhile")
    words = [job_dir.worktree, plan["branch"]]
    if held is None:
        words = ["--no-track", "-b", plan["branch"], job_dir.worktree, plan["base"]]
    git.text("worktree", "add", "--no-checkout", *words, seconds=LONG_SECONDS)


@contextlib.contextmanager
def repository_lock(job_dir: JobDirectory, plan: Json) -> Iterator[int]:
    """Only one process at a time changes a repository's list of worktrees: git fails if another git is adding one.

    The lock is on the directory itself, so that it leaves no file. File systems that cannot lock directories go
    without.
    """
    descriptor = os.open(plan["repository"], _WALK)
    try:
        try:
            job_dir.wait_for(descriptor)
        except OSError:
            pass
        yield descriptor
    finally:
        os.close(descriptor)


def _check_repository(job_dir: JobDirectory, plan: Json) -> None:
    if not os.path.isdir(plan["repository"]):
        raise WorkDirMissing(job=job_dir.job_id, why=f"its repository {plan['repository']} is not there")


def forget_worktree(git: Git, job_dir: JobDirectory) -> None:
    """Removes git's entry of a worktree. --force twice: git locks a worktree while it creates it."""
    git.succeeds("worktree", "remove", "--force", "--force", job_dir.worktree)


def _enter(job_dir: JobDirectory, plan: Json) -> str:
    """The directory of the job's `workdir` inside the worktree, reached without a link."""
    _check_repository(job_dir, plan)
    if not os.path.isdir(plan["git_directory"]):
        raise WorkDirUnusable(
            job=job_dir.job_id,
            why=f"git no longer knows {job_dir.worktree}; "
            f"`mam workspaces --remove {job_dir.job_id} --force` removes it",
        )
    names = [name for name in plan["prefix"].split("/") if name]
    try:
        directory = os.open(job_dir.worktree, _WALK)
        try:
            for name in names:
                directory = _step(directory, name)
        finally:
            os.close(directory)
    except NotADirectoryError:
        below = f"{plan['prefix']} in its worktree" if names else job_dir.worktree
        raise WorkDirUnusable(
            job=job_dir.job_id, why=f"{below} is not a directory, or leads out of it by a link"
        ) from None
    return os.path.join(job_dir.worktree, *names)


def _step(directory: int, name: str) -> int:
    """Opens the next directory; creates it if the commit lacks it, since the job was registered from there."""
    try:
        os.mkdir(name, dir_fd=directory)
    except FileExistsError:
        pass
    below = os.open(name, _WALK, dir_fd=directory)
    os.close(directory)
    return below


def _about_submodules(job_dir: JobDirectory) -> str | None:
    there = os.path.lexists(os.path.join(job_dir.worktree, ".gitmodules"))
    return "the repository's submodules are not checked out in a worktree" if there else None
