"""Notes where the changes of a job are: what was there before it and after it, under `refs/mam/JOB`.

The refs keep the objects, so a diff can be shown when the worktree and its branch are gone. For a worktree of mam they
name commits. In a directory that others use too they name trees, made with an index of mam's own: the user's index and
files stay as they are.

| step | state if the process is killed before the next step |
|---|---|
| 1. `before` is written, only if it is not there | the next attempt finds or writes it |
| 2. the agent works, and mam commits or stores a tree | objects without a ref, which git removes some day |
| 3. `after` is written | `mam diff` shows it, also if the record does not name it |
| 4. the record gets the summary | |
"""

from __future__ import annotations

import os
import shutil

from mam.jobs.changed_files import is_object
from mam.jobs.input_rules import is_job_id
from mam.util.frozen import Frozen
from mam.work.git.command import LONG_SECONDS, Git, GitFailed, at, discover
from mam.work.git.commits import commit_worktree
from mam.work.git.staging import stage
from mam.work.git.worktrees import MADE, read_plan
from mam.work.job_dir import JobDirectory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Job, Json
    from mam.work.workdir import WorkDir

REFS = "refs/mam/"
BEFORE, AFTER = "before", "after"
NUMSTAT_LIMIT = 1 << 26
LARGEST_FILE = 64 << 20
"""A larger file of a shared directory is left out of its trees."""
NO_PROGRAMS = ("--no-ext-diff", "--no-textconv", "--submodule=short", "--ignore-submodules=none")
"""For every diff of mam: no command that the repository names, and no look into nested repositories."""


def note_before(job: Job, work_directory: str, workdir: WorkDir, private: str) -> Json | None:
    """The facts for `run.changes` before the agent starts; None outside of a repository. A problem with git must not
    stop a job: the facts then name it."""
    try:
        if workdir.kind == "worktree":
            return _worktree_before(job, JobDirectory(work_directory, job.workspace_id))
        return _shared_before(job, workdir.path, private) if _is_in_repository(workdir.path) else None
    except (GitFailed, OSError) as failed:
        return {"directory": workdir.path, "problem": str(failed)}


def note_after(job: Job, work_directory: str, facts: Json | None, private: str, *, is_wip: bool) -> Json | None:
    """The facts when the agent has ended: its work is committed or stored, and counted."""
    if facts is None or "before" not in facts:
        return facts
    try:
        if facts["shared"]:
            place = _same_place(facts)
            git = place.git
            after, left_out = _tree(place, private)
            note = f"{left_out} files above {LARGEST_FILE >> 20} MiB were left out" if left_out else None
        else:
            git = at(facts["repository"])
            after, note = _committed(job, JobDirectory(work_directory, job.workspace_id), is_wip=is_wip)
        git.text("update-ref", ref(job.job_id, AFTER), after)
        found = {**facts, "after": after, **count(git, facts["before"], after)}
        return found if note is None else {**found, "note": note}
    except (GitFailed, OSError) as failed:
        return {**facts, "problem": str(failed)}


def commit_leftovers(job: Job, work_directory: str) -> None:
    """Commits the worktree of an ended job whose worker could not: it was killed, or the job was cancelled. Does
    nothing when another job works there."""
    job_dir = JobDirectory(work_directory, job.workspace_id)
    plan = read_plan(job_dir) if os.path.isdir(job_dir.path) else None
    if plan is None or plan["state"] != MADE or not os.path.isdir(job_dir.worktree):
        return
    if not _is_unfinished(at(plan["repository"]), job.job_id):
        return
    after, _ = _committed(job, job_dir, is_wip=True)
    at(plan["repository"]).text("update-ref", ref(job.job_id, AFTER), after)


def directory_tree(directory: str, private: str) -> str:
    """A tree of a directory in a repository as it is now; `private` is the prefix of files that this needs."""
    place = _find_place(directory)
    if place is None:
        raise GitFailed(f"{directory} is no longer in a repository")
    return _tree(place, private)[0]


def ref(job_id: str, when: str) -> str:
    return f"{REFS}{job_id}/{when}"


def read_ref(git: Git, job_id: str, when: str) -> str | None:
    try:
        found = git.path("rev-parse", "--verify", "--quiet", ref(job_id, when))
    except GitFailed:
        return None
    return found if is_object(found) else None


def count(git: Git, before: str, after: str) -> Json:
    """How many files and lines differ. Binary files count as files only."""
    if before == after:
        return {"files": 0, "added": 0, "removed": 0}
    words = ("diff-tree", "-r", "-z", "--numstat", "--no-renames", *NO_PROGRAMS, before, after, "--")
    lines = git.text(*words, seconds=LONG_SECONDS, limit=NUMSTAT_LIMIT).split("\0")[:-1]
    counts = [line.split("\t", 2)[:2] for line in lines]
    added, removed = (sum(int(one[side]) for one in counts if one[side].isdigit()) for side in (0, 1))
    return {"files": len(counts), "added": added, "removed": removed}


# -- a worktree of mam -----------------------------------------------------------------------------------------------


def _worktree_before(job: Job, job_dir: JobDirectory) -> Json:
    plan = read_plan(job_dir)
    assert plan is not None
    git = at(plan["repository"])
    before = _earlier_ref(git, job, BEFORE)
    if before is None:
        before = plan["base"] if job.continues is None else _taken_over(git, job, job_dir)
        git.text("update-ref", ref(job.job_id, BEFORE), before)
    if _earlier_ref(git, job, AFTER) is not None:
        git.text("update-ref", "-d", ref(job.job_id, AFTER))  # this attempt writes its own
    return {
        "repository": plan["repository"], "directory": job_dir.worktree, "branch": plan["branch"], "before": before,
        "shared": False,
    }  # fmt: skip


def _earlier_ref(git: Git, job: Job, when: str) -> str | None:
    """The ref that an earlier attempt wrote. Each process of git takes time, so the first attempt asks for none."""
    return read_ref(git, job.job_id, when) if job.attempt > 1 else None


def _taken_over(git: Git, job: Job, job_dir: JobDirectory) -> str:
    """Where a continuation begins. What a killed worker left is committed first, and belongs to the earlier job."""
    before, _ = _committed(job, job_dir, is_wip=True)
    earlier = (job.conversation or {}).get("job")
    if isinstance(earlier, str) and is_job_id(earlier) and _is_unfinished(git, earlier):
        git.text("update-ref", ref(earlier, AFTER), before)
    return before


def _is_unfinished(git: Git, job_id: str) -> bool:
    """Whether the job began, and no worker noted its end."""
    return read_ref(git, job_id, BEFORE) is not None and read_ref(git, job_id, AFTER) is None


def _committed(job: Job, job_dir: JobDirectory, *, is_wip: bool) -> tuple[str, str | None]:
    with job_dir.locked() as lock:
        plan = read_plan(job_dir)
        if plan is None:
            raise GitFailed(f"the worktree {job_dir.worktree} is gone")
        after, nested = commit_worktree(job, job_dir, plan, lock, is_wip=is_wip)
    return after, f"mam commits no nested repository; in the worktree is {nested[0]!a}" if nested else None


# -- a directory that others use too ---------------------------------------------------------------------------------


def _is_in_repository(directory: str) -> bool:
    """Whether git could find a repository; most jobs without one then cost no process."""
    while True:
        if os.path.lexists(os.path.join(directory, ".git")):
            return True
        above = os.path.dirname(directory)
        if above == directory:
            return False
        directory = above


class _Place(Frozen):
    """A directory of the user in a repository."""

    git: Git
    top: str
    """The top of its work tree."""
    repository: str
    """The git directory that all work trees of the repository share."""
    index: str


def _find_place(directory: str) -> _Place | None:
    """None if the directory is in no work tree."""
    git = discover(directory)
    try:
        top, repository, index = _paths(git, ("--show-toplevel",), ("--git-common-dir",), ("--git-path", "index"))
    except GitFailed:
        if git.path("rev-parse", "--is-inside-work-tree") != "true":
            return None
        raise
    return _Place(git=git.replace(where=("-C", top)), top=top, repository=repository, index=index)


def _paths(git: Git, *asked: tuple[str, ...]) -> list[str]:
    """The absolute paths that `git rev-parse` prints. One process prints all, unless a path contains a newline."""
    lines = git.path("rev-parse", "--path-format=absolute", *(word for words in asked for word in words)).split("\n")
    if len(lines) == len(asked):
        return lines
    return [git.path("rev-parse", "--path-format=absolute", *words) for words in asked]


def _same_place(facts: Json) -> _Place:
    """The place of `facts` after the agent worked there; its `.git` may be another one by now."""
    place = _find_place(facts["directory"])
    if place is None or place.repository != facts["repository"]:
        raise GitFailed(f"{facts['directory']} is no longer in the repository {facts['repository']}")
    return place


def _shared_before(job: Job, directory: str, private: str) -> Json | None:
    place = _find_place(directory)
    if place is None:
        return None
    git = place.git
    before = _earlier_ref(git, job, BEFORE)
    if before is None:
        before, _ = _tree(place, private)
        git.text("update-ref", ref(job.job_id, BEFORE), before)
    return {
        "repository": place.repository, "directory": place.top, "branch": _current_branch(git), "before": before,
        "shared": True,
    }  # fmt: skip


def _current_branch(git: Git) -> str | None:
    try:
        return git.path("symbolic-ref", "--quiet", "--short", "HEAD")
    except GitFailed:
        return None  # a detached HEAD


def _tree(place: _Place, private: str) -> tuple[str, int]:
    """A tree of the directory as it is now, and how many files are too large for it. The copy of the user's index
    tells git which files it knows, so that only changed ones are read."""
    copy = f"{private}.index"
    os.makedirs(os.path.dirname(copy), 0o700, exist_ok=True)
    try:
        shutil.copyfile(place.index, copy)
    except FileNotFoundError:
        pass  # nothing was ever added
    try:
        own = place.git.replace(index=copy)
        left_out = stage(own, place.top, largest=LARGEST_FILE).too_large
        return own.path("write-tree"), left_out
    finally:
        for path in (copy, f"{copy}.lock"):
            if os.path.lexists(path):
                os.unlink(path)
