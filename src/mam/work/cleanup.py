"""Which workspaces there are, what is in them that exists nowhere else, and removing them without losing it."""

from __future__ import annotations

import os

from mam.errors import WorkspaceKept
from mam.jobs.input_rules import is_job_id
from mam.util.frozen import Frozen
from mam.work.git.command import Git, GitFailed, at
from mam.work.git.staging import INDEX_LIMIT, gitlinks
from mam.work.git.worktrees import MADE, REMOVING, commit_of, forget_worktree, read_page, repository_alone
from mam.work.job_dir import Home, remove_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.jobs.record import Json

_MOST_COMMITS = 1000


class Held(Frozen):
    """One workspace on this host. `dirty` and `unpushed` are True and 1 at least when nobody can tell."""

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


def places(work_directory: str) -> list[Held]:
    """Everything that `prepare` has made on this host, except for what is the user's own anyway."""
    return [held for name in _names(work_directory) for held in [look(Home(work_directory, name))] if held is not None]


def look(home: Home) -> Held | None:
    page = read_page(home) if os.path.isdir(home.path) else None
    if page is not None:
        return _look_at_worktree(home, page)
    if os.path.lexists(home.worktree):
        return Held(
            job_id=home.job_id, kind="worktree", path=home.worktree, dirty=True, problem="nothing says what is in it"
        )
    if not os.path.lexists(home.fresh):
        return None
    return Held(job_id=home.job_id, kind="fresh", path=home.fresh, dirty=not _is_empty(home.fresh))


def remove(work_directory: str, job_id: str, *, force: bool) -> str | None:
    """WorkspaceKept when something would be lost. With force files are lost, and commits still are not: then the branch
    stays, and the sentence that comes back says so."""
    home = Home(work_directory, job_id)
    if not os.path.isdir(home.path):
        raise WorkspaceKept(job=job_id, why="there is none on this host")
    with home.locked() as lock:
        held = look(home)
        if held is None:
            raise WorkspaceKept(job=job_id, why="there is none on this host")
        page = read_page(home)
        started = page is not None and page["state"] == REMOVING
        if held.why_kept and not force and not started:
            raise WorkspaceKept(job=job_id, why="; ".join([*held.why_kept, "--force removes it all the same"]))
        if page is not None:
            page = {**page, "state": REMOVING}
            home.write(page)
            return finish_removing(home, page, lock)
        remove_tree(home.worktree)
        remove_tree(home.fresh)
        home.forget()
        return None


def finish_removing(home: Home, page: Json, lock: int) -> str | None:
    """From wherever an earlier try was cut off."""
    note = None
    remove_tree(home.worktree)
    remove_tree(home.fresh)
    if os.path.isdir(page["repository"]):
        with repository_alone(home, page) as alone:
            git = at(page["repository"], keep_open=(lock, alone))
            forget_worktree(git, home)
            note = _delete_branch(git, page)
    home.forget()
    return note


def _delete_branch(git: Git, page: Json) -> str | None:
    branch, held = page["branch"], commit_of(git, page["branch"])
    if held is None:
        return None
    if count := _count_own(git, page, held):
        return f"the branch {branch} was kept: {count} of its commits are nowhere else"
    # Only if it is still what was looked at.
    git.succeeds("update-ref", "-d", f"refs/heads/{branch}", held)
    git.succeeds("config", "--local", "--remove-section", f"branch.{branch}")
    return None


def _look_at_worktree(home: Home, page: Json) -> Held:
    held = Held(job_id=home.job_id, kind="worktree", path=home.worktree, branch=page["branch"])
    if page["state"] != MADE:
        return held  # no agent has been in it, or it is on its way out
    try:
        return held.replace(dirty=_is_dirty(home, page), unpushed=_count_unpushed(page))
    except (GitFailed, OSError) as error:
        return held.replace(dirty=True, unpushed=1, problem=f"git cannot say what is in it: {error}")


def _is_dirty(home: Home, page: Json) -> bool:
    if not os.path.lexists(home.worktree):
        return False
    git = at(page["git_directory"], home.worktree)
    # Not into submodules: git would obey their configuration, which the agent may have written.
    words = ("--porcelain", "-z", "--untracked-files=normal", "--ignore-submodules=dirty")
    if git.text("status", *words, limit=INDEX_LIMIT):
        return True
    return _has_loose_artifact(git, home, page) or _has_nested(git, home)


def _has_loose_artifact(git: Git, home: Home, page: Json) -> bool:
    """What git ignores is not shown as a change, and may still be what the job was for."""
    artifacts = [os.path.join(page["prefix"], name) for name in page["artifacts"] if not os.path.isabs(name)]
    there = [name for name in artifacts if os.path.lexists(os.path.join(home.worktree, name))]
    return any(not git.text("ls-files", "-z", "--", name) for name in there)


def _has_nested(git: Git, home: Home) -> bool:
    """A repository that is tracked as a link to one of its commits: nothing else of it is in any commit."""
    return any(os.path.lexists(os.path.join(home.worktree, name, ".git")) for name in gitlinks(git))


def _count_unpushed(page: Json) -> int:
    """Of the branch, and of where the worktree stands, which may be on no branch at all."""
    git = at(page["repository"])
    starts = [start for start in (commit_of(git, page["branch"]), _standing(page)) if start is not None]
    return _count_own(git, page, *starts) if starts else 0


def _standing(page: Json) -> str | None:
    git = at(page["git_directory"])
    try:
        return git.path("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    except GitFailed:
        return None


def _count_own(git: Git, page: Json, *starts: str) -> int:
    others = ("--not", page["base"], "--remotes", f"--exclude={page['branch']}", "--branches")
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
