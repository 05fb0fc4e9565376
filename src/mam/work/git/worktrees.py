"""A git worktree and branch for one job, made so that a kill at any step leaves something the next try makes whole.

The plan (which commit, which branch) is on disk before git is called, so that a second try makes the same. Only a
worktree that was never handed to an agent is thrown away; one that was is continued, and if somebody removed it, it is
made anew from its branch.
"""

from __future__ import annotations

import contextlib
import os
import re

from mam.errors import WorkDirMissing, WorkDirUnusable
from mam.jobs.input_rules import ID_PREFIX_SHOWN
from mam.work.git.command import LONG_SECONDS, Git, GitFailed, at, discover
from mam.work.job_dir import remove_tree
from mam.work.workdir import Place, source_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mam.jobs.record import Job, Json
    from mam.work.job_dir import Home

MAKING, MADE, REMOVING = "making", "made", "removing"
_FIELDS = ("state", "repository", "git_directory", "branch", "base", "prefix")
_SLUG_LIMIT = 40
_WALK = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def prepare_worktree(job: Job, home: Home, mapping: Mapping[str, str], repos: Mapping[str, str]) -> Place:
    with home.locked() as lock:
        page = _checked(home)
        if page is not None and page["state"] == REMOVING:
            from mam.work.cleanup import finish_removing

            finish_removing(home, page, lock)
            home.make()
            page = None
        if page is None:
            if job.repository is not None and job.workdir is None:
                page = _planned_upstream(job, repos, lock)
            else:
                page = _planned(job, source_of(job, mapping), lock)
            home.write(page)
        note = None
        if page["state"] == MAKING or not os.path.lexists(home.worktree):
            note = None if page["state"] == MAKING else "its worktree was gone and was made anew from its branch"
            page = _make(home, page, lock)
        path = _enter(home, page)
    return Place(path=path, kind="worktree", branch=page["branch"], note=note or _about_submodules(home))


def read_page(home: Home) -> Json | None:
    """What is written down about the worktree; None when there is none, or nothing that can be relied on."""
    page = {"git_directory": "", "artifacts": [], **(home.read() or {})}
    if not isinstance(page["artifacts"], list):
        return None
    texts = [page.get(name) for name in _FIELDS] + page["artifacts"]
    return page if all(isinstance(text, str) for text in texts) else None


def _checked(home: Home) -> Json | None:
    page = read_page(home)
    if page is None and os.path.lexists(home.worktree):
        raise WorkDirUnusable(job=home.job_id, why=f"nothing says what is in {home.worktree}; it was left alone")
    return page


def _planned(job: Job, source: str, lock: int) -> Json:
    git = discover(source, (lock,))
    top = git.path("rev-parse", "--show-toplevel")
    prefix = git.path("rev-parse", "--show-prefix")
    if os.path.join(top, prefix).rstrip("/") != source:
        raise GitFailed(f"{source} is not in the working tree of its repository")
    try:
        base = git.path("rev-parse", "--verify", "--quiet", f"{_start(job)}^{{commit}}")
    except GitFailed:
        raise GitFailed(f"the repository {top} has no commit yet, so nothing can be made from it") from None
    return {
        "state": MAKING,
        "repository": git.path("rev-parse", "--path-format=absolute", "--git-common-dir"),
        "branch": _free_branch(git, job),
        "base": base,
        "prefix": prefix,
        "artifacts": job.expected_artifacts,
    }


def _planned_upstream(job: Job, repos: Mapping[str, str], lock: int) -> Json:
    """From a repository that is named, as it is now where it comes from."""
    from mam.work.git.mirrors import fetched

    upstream = fetched(job, repos, (lock,))
    return {
        "state": MAKING,
        "repository": upstream.work,
        "branch": _free_branch(at(upstream.work, keep_open=(lock,)), job),
        "base": upstream.base,
        "prefix": "",
        "artifacts": job.expected_artifacts,
    }


def _start(job: Job) -> str:
    """The branch that the job names, else where its directory stands."""
    branch = (job.repository or {}).get("branch")
    return f"refs/heads/{branch}" if isinstance(branch, str) else "HEAD"


def _free_branch(git: Git, job: Job) -> str:
    """Another store may hold a job whose id begins alike."""
    start = f"mam/{slug(job.prompt)}"
    names = [f"{start}-{job.job_id[:ID_PREFIX_SHOWN]}", f"{start}-{job.job_id}"]
    names += [f"{start}-{job.job_id}-{number}" for number in range(2, 10)]
    for name in names:
        if commit_of(git, name) is None:
            return name
    raise GitFailed(f"the branches {names[0]} to {names[-1]} exist already")


def slug(prompt: str) -> str:
    """The first words of a prompt, as a branch may be called."""
    words = re.findall(r"[a-z0-9]+", prompt[:1000].lower())
    text = ""
    for word in words:
        if len(text) + len(word) >= _SLUG_LIMIT:
            break
        text += f"-{word}" if text else word
    return text or (words[0][:_SLUG_LIMIT] if words else "job")


def commit_of(git: Git, branch: str) -> str | None:
    try:
        return git.path("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}^{{commit}}")
    except GitFailed:
        return None


def _make(home: Home, page: Json, lock: int) -> Json:
    _check_repository(home, page)
    with repository_alone(home, page) as alone:
        _add(home, page, at(page["repository"], keep_open=(lock, alone)))
    directory = _checked_out(home, lock)
    page = {**page, "state": MADE, "git_directory": directory}
    home.write(page)
    return page


def _checked_out(home: Home, lock: int) -> str:
    """The worktree's git directory. A step of its own, since git reads other settings in a worktree than in its
    repository: a file may be included for one branch. Half a checkout goes, and leaves the disk its room."""
    try:
        directory = discover(home.worktree).path("rev-parse", "--absolute-git-dir")
        at(directory, home.worktree, (lock,)).text("reset", "--hard", "--quiet", seconds=LONG_SECONDS)
    except GitFailed:
        remove_tree(home.worktree)
        raise
    return directory


def _add(home: Home, page: Json, git: Git) -> None:
    remove_tree(home.worktree)
    forget_worktree(git, home)
    held = commit_of(git, page["branch"])
    if page["state"] == MAKING and held not in (None, page["base"]):
        raise GitFailed(f"somebody else made the branch {page['branch']} meanwhile")
    words = [home.worktree, page["branch"]]
    if held is None:
        words = ["--no-track", "-b", page["branch"], home.worktree, page["base"]]
    git.text("worktree", "add", "--no-checkout", *words, seconds=LONG_SECONDS)


@contextlib.contextmanager
def repository_alone(home: Home, page: Json) -> Iterator[int]:
    """One at a time changes a repository's list of worktrees: git stumbles over one that another git is just adding.

    The lock is on the directory itself, so that nothing is left in it. Some file systems do not lock directories; there
    it has to go without.
    """
    descriptor = os.open(page["repository"], _WALK)
    try:
        try:
            home.wait_for(descriptor)
        except OSError:
            pass
        yield descriptor
    finally:
        os.close(descriptor)


def _check_repository(home: Home, page: Json) -> None:
    if not os.path.isdir(page["repository"]):
        raise WorkDirMissing(job=home.job_id, why=f"its repository {page['repository']} is not there")


def forget_worktree(git: Git, home: Home) -> None:
    """git's own note of a worktree that is gone. Twice --force: one that was being made is locked by git."""
    git.succeeds("worktree", "remove", "--force", "--force", home.worktree)


def _enter(home: Home, page: Json) -> str:
    """The same directory below the repository's top as the job's `workdir`, reached without a link."""
    _check_repository(home, page)
    if not os.path.isdir(page["git_directory"]):
        raise WorkDirUnusable(
            job=home.job_id,
            why=f"git no longer knows {home.worktree}; `mam workspaces --remove {home.job_id} --force` clears it away",
        )
    names = [name for name in page["prefix"].split("/") if name]
    try:
        directory = os.open(home.worktree, _WALK)
        try:
            for name in names:
                directory = _step(directory, name)
        finally:
            os.close(directory)
    except NotADirectoryError:
        below = f"{page['prefix']} in its worktree" if names else home.worktree
        raise WorkDirUnusable(
            job=home.job_id, why=f"{below} is not a directory, or leads out of it by a link"
        ) from None
    return os.path.join(home.worktree, *names)


def _step(directory: int, name: str) -> int:
    """One directory down; what the commit does not have is made, since the job was registered from there."""
    try:
        os.mkdir(name, dir_fd=directory)
    except FileExistsError:
        pass
    below = os.open(name, _WALK, dir_fd=directory)
    os.close(directory)
    return below


def _about_submodules(home: Home) -> str | None:
    there = os.path.lexists(os.path.join(home.worktree, ".gitmodules"))
    return "the repository's submodules are not checked out in a worktree" if there else None
