"""Applies the changes of a job to a checkout of the user: fast-forward, merge, or staged without a commit.

mam merges with `git merge-tree`, which touches no file. Only a merge without conflicts reaches the checkout, by git's
own fast-forward, which refuses to overwrite what the user has not committed.

| step | state if the process is killed before the next step |
|---|---|
| 1. merge in the object store | nothing changed |
| 2. git updates files and index, then the branch | `mam apply` again completes it |
| 3. the job notes the apply | `mam apply` again finds the changes there, and notes it |
"""

from __future__ import annotations

import os

from mam.util.frozen import Frozen
from mam.work.git.command import LONG_SECONDS, Git, GitFailed, at, discover
from mam.work.git.commits import title, with_author

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Job

FAST_FORWARD, MERGE, STAGED, PRESENT = "fast-forward", "merge", "staged", "present"
SHOWN_FILES = 5
_IN_PROGRESS = {
    "MERGE_HEAD": "a merge", "rebase-merge": "a rebase", "rebase-apply": "a rebase",
    "CHERRY_PICK_HEAD": "a cherry-pick", "REVERT_HEAD": "a revert", "BISECT_LOG": "a bisect",
}  # fmt: skip


class CannotApply(Exception):
    """Why nothing was changed, and what to do; the end of a sentence."""


class Applied(Frozen):
    how: str
    branch: str
    commit: str
    """The commit of the branch; for `staged` the one below the staged changes."""
    directory: str


def checkout(directory: str, repository: str) -> str | None:
    """The top of the checkout of this repository that contains the directory."""
    try:
        git = discover(directory)
        common = git.path("rev-parse", "--path-format=absolute", "--git-common-dir")
        top = git.path("rev-parse", "--path-format=absolute", "--show-toplevel")
    except (GitFailed, OSError):
        return None
    return top if os.path.realpath(common) == os.path.realpath(repository) else None


def apply_changes(job: Job, commit: str, directory: str, *, staged: bool) -> Applied:
    """Raises CannotApply, or GitFailed, before anything is changed."""
    git = discover(directory)
    git = at(git.path("rev-parse", "--absolute-git-dir"), directory)
    branch, head = _position(git)
    _check_nothing_in_progress(git)
    if git.succeeds("merge-base", "--is-ancestor", commit, head):
        return Applied(how=PRESENT, branch=branch, commit=head, directory=directory)
    is_ahead = git.succeeds("merge-base", "--is-ancestor", head, commit)
    target = commit if is_ahead else _merged(git, job, head, commit, branch)
    _check_clean(git, directory, head, target)
    if staged:
        git.text("read-tree", "-m", "-u", head, target, seconds=LONG_SECONDS)
        return Applied(how=STAGED, branch=branch, commit=head, directory=directory)
    options = ("--ff-only", "--no-autostash", "--no-stat", "--no-verify-signatures", "--quiet")
    git.text("merge", *options, target, seconds=LONG_SECONDS)
    return Applied(how=FAST_FORWARD if is_ahead else MERGE, branch=branch, commit=target, directory=directory)


def _position(git: Git) -> tuple[str, str]:
    try:
        branch = git.path("symbolic-ref", "--quiet", "--short", "HEAD")
    except GitFailed:
        raise CannotApply("no branch is checked out; `git switch BRANCH` first") from None
    try:
        return branch, git.path("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    except GitFailed:
        raise CannotApply(f"the branch {branch} has no commit yet") from None


def _check_nothing_in_progress(git: Git) -> None:
    folder = git.path("rev-parse", "--absolute-git-dir")
    for name, what in _IN_PROGRESS.items():
        if os.path.lexists(os.path.join(folder, name)):
            raise CannotApply(f"{what} is in progress; finish or abort it first")


def _merged(git: Git, job: Job, head: str, commit: str, branch: str) -> str:
    """A commit that merges both, made without touching a file."""
    code, output = git.outcome("merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", head, commit)
    tree, *names = output.split("\0")
    if code == 1:
        files = listed([name for name in names if name])
        raise CannotApply(
            f"it conflicts with {branch} in {files}; `git merge` its branch and resolve them,"
            f' or `mam continue {job.job_id[:8]} "merge {branch} and resolve the conflicts"`'
        )
    if code:
        raise CannotApply("git cannot merge it: the histories have nothing in common, or git is older than 2.38")
    message = f"Merge job {job.job_id[:8]}: {title(job)}\n\nMam-Job: {job.job_id}\n"
    return with_author(git).path("commit-tree", tree, "-p", head, "-p", commit, "-m", message)


def _check_clean(git: Git, directory: str, head: str, target: str) -> None:
    """git would refuse too, but not name the files in one line. Files that the job did not touch may be dirty, and
    those that already are as they will be."""
    touched = set(_names(git, "diff-tree", "-r", "-z", "--name-only", "--no-renames", head, target))
    words = ("diff-index", "-z", "--name-only", "--no-ext-diff", "--ignore-submodules=all")
    dirty = set(_names(git, *words, "HEAD", "--")) & set(_names(git, *words, target, "--"))
    added = _names(git, "diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=A", head, target)
    tracked = set(_names(git, "ls-files", "-z"))
    there = {name for name in added if name not in tracked and os.path.lexists(os.path.join(directory, name))}
    in_way = sorted((touched & dirty) | there)
    if in_way:
        raise CannotApply(
            f"{listed(in_way)} would be overwritten; commit or move what you have there, or use `git stash`"
        )


def _names(git: Git, *words: str) -> list[str]:
    return git.text(*words, seconds=LONG_SECONDS, limit=1 << 28).split("\0")[:-1]


def listed(names: list[str]) -> str:
    """Some names of files, in one line."""
    more = f" and {len(names) - SHOWN_FILES} more" if len(names) > SHOWN_FILES else ""
    return ", ".join(name if name.isprintable() else ascii(name) for name in names[:SHOWN_FILES]) + more
