"""Lists the workspaces on this host, finds out what would be lost with each, and removes them without loss."""

from __future__ import annotations

import os

from mam.errors import WorkspaceKept
from mam.jobs.input_rules import is_job_id
from mam.util.frozen import Frozen
from mam.work.git.command import Git, GitFailed, at
from mam.work.git.staging import INDEX_LIMIT, gitlinks
from mam.work.git.worktrees import MADE, REMOVING, branch_commit, forget_worktree, read_plan, repository_lock
from mam.work.job_dir import JobDirectory, remove_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.jobs.record import Json

_MOST_COMMITS = 1000


class Workspace(Frozen):
    """One workspace on this host. If git cannot tell, `dirty` is True and `unpushed` at least 1."""

    job_id: str
    kind: str
    path: str
    branch: str | None = None
    dirty: bool = False
    unpushed: int = 0
    """Commits that are in no remote and in no other branch."""
    problem: str | None = None

    @property
    def why_kept(self) -> list[str]:
        reasons = [self.problem] if self.problem else []
        if self.dirty and not self.problem:
            what = "it holds files" if self.kind == "fresh" else "it has changes that are not committed"
            reasons.append(what)
        if self.unpushed and not self.problem:
            reasons.append(f"{self.unpushed} of its commits are in no remote and no other branch")
        return reasons


def list_workspaces(work_directory: str) -> list[Workspace]:
    """Everything that `prepare_workdir` made on this host. A user's own directory is not included."""
    return [
        held
        for name in _names(work_directory)
        for held in [inspect_workspace(JobDirectory(work_directory, name))]
        if held is not None
    ]


def inspect_workspace(job_dir: JobDirectory) -> Workspace | None:
    plan = read_plan(job_dir) if os.path.isdir(job_dir.path) else None
    if plan is not None:
        return _look_at_worktree(job_dir, plan)
    if os.path.lexists(job_dir.worktree):
        return Workspace(
            job_id=job_dir.job_id,
            kind="worktree",
            path=job_dir.worktree,
            dirty=True,
            problem="its content is unknown",
        )
    if not os.path.lexists(job_dir.fresh):
        return None
    return Workspace(job_id=job_dir.job_id, kind="fresh", path=job_dir.fresh, dirty=not _is_empty(job_dir.fresh))


def remove_workspace(work_directory: str, job_id: str, *, force: bool) -> str | None:
    """Raises WorkspaceKept if something would be lost. With `force`, uncommitted files are lost but commits are not:
    their branch stays, and the returned sentence says so."""
    job_dir = JobDirectory(work_directory, job_id)
    if not os.path.isdir(job_dir.path):
        raise WorkspaceKept(job=job_id, why="there is none on this host")
    with job_dir.locked() as lock:
        held = inspect_workspace(job_dir)
        if held is None:
            raise WorkspaceKept(job=job_id, why="there is none on this host")
        plan = read_plan(job_dir)
        started = plan is not None and plan["state"] == REMOVING
        if held.why_kept and not force and not started:
            raise WorkspaceKept(job=job_id, why="; ".join([*held.why_kept, "--force removes it all the same"]))
        if plan is not None:
            plan = {**plan, "state": REMOVING}
            job_dir.write(plan)
            return finish_removing(job_dir, plan, lock)
        remove_tree(job_dir.worktree)
        remove_tree(job_dir.fresh)
        job_dir.forget()
        return None


def finish_removing(job_dir: JobDirectory, plan: Json, lock: int) -> str | None:
    """Continues a removal that was interrupted at any step."""
    note = None
    remove_tree(job_dir.worktree)
    remove_tree(job_dir.fresh)
    if os.path.isdir(plan["repository"]):
        with repository_lock(job_dir, plan) as alone:
            git = at(plan["repository"], keep_open=(lock, alone))
            forget_worktree(git, job_dir)
            note = _delete_branch(git, plan)
    job_dir.forget()
    return note


def _delete_branch(git: Git, plan: Json) -> str | None:
    branch, held = plan["branch"], branch_commit(git, plan["branch"])
    if held is None:
        return None
    if count := _count_own(git, plan, held):
        return f"the branch {branch} was kept: {count} of its commits are nowhere else"
    # Only if the branch has not moved since the check.
    git.succeeds("update-ref", "-d", f"refs/heads/{branch}", held)
    git.succeeds("config", "--local", "--remove-section", f"branch.{branch}")
    return None


def _look_at_worktree(job_dir: JobDirectory, plan: Json) -> Workspace:
    held = Workspace(job_id=job_dir.job_id, kind="worktree", path=job_dir.worktree, branch=plan["branch"])
    if plan["state"] != MADE:
        return held  # no agent has used it, or it is being removed
    try:
        return held.replace(dirty=_is_dirty(job_dir, plan), unpushed=_count_unpushed(plan))
    except (GitFailed, OSError) as error:
        return held.replace(dirty=True, unpushed=1, problem=f"git cannot read it: {error}")


def _is_dirty(job_dir: JobDirectory, plan: Json) -> bool:
    if not os.path.lexists(job_dir.worktree):
        return False
    git = at(plan["git_directory"], job_dir.worktree)
    # Not into submodules: git would run the configuration there, which the agent may have written.
    words = ("--porcelain", "-z", "--untracked-files=normal", "--ignore-submodules=dirty")
    if git.text("status", *words, limit=INDEX_LIMIT):
        return True
    return _has_loose_artifact(git, job_dir, plan) or _has_nested(git, job_dir)


def _has_loose_artifact(git: Git, job_dir: JobDirectory, plan: Json) -> bool:
    """git does not list ignored files as changes, but an ignored artifact may be the purpose of the job."""
    artifacts = [os.path.join(plan["prefix"], name) for name in plan["artifacts"] if not os.path.isabs(name)]
    there = [name for name in artifacts if os.path.lexists(os.path.join(job_dir.worktree, name))]
    return any(not git.text("ls-files", "-z", "--", name) for name in there)


def _has_nested(git: Git, job_dir: JobDirectory) -> bool:
    """The worktree's commits contain only a link to a nested repository, not its content."""
    return any(os.path.lexists(os.path.join(job_dir.worktree, name, ".git")) for name in gitlinks(git))


def _count_unpushed(plan: Json) -> int:
    """Commits of the branch and of the worktree's HEAD, which may be detached."""
    git = at(plan["repository"])
    starts = [start for start in (branch_commit(git, plan["branch"]), _standing(plan)) if start is not None]
    return _count_own(git, plan, *starts) if starts else 0


def _standing(plan: Json) -> str | None:
    git = at(plan["git_directory"])
    try:
        return git.path("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    except GitFailed:
        return None


def _count_own(git: Git, plan: Json, *starts: str) -> int:
    others = ("--not", plan["base"], "--remotes", f"--exclude={plan['branch']}", "--branches")
    return int(git.path("rev-list", "--count", f"--max-count={_MOST_COMMITS}", *starts, *others))


def _is_empty(directory: str) -> bool:
    try:
        with os.scandir(directory) as entries:
            return next(entries, None) is None
    except OSError:
        return False


def _names(work_directory: str) -> Iterator[str]:
    try:
        names = sorted(os.listdir(work_directory))
    except FileNotFoundError:
        return
    yield from (name for name in names if is_job_id(name))
