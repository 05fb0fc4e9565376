"""Commits what an agent left uncommitted in a worktree of mam. The author comes from the user's git configuration; no
hook runs, nothing is signed, and no ignored file and no nested repository is committed."""

from __future__ import annotations

from mam.work.git.command import LONG_SECONDS, Git, at
from mam.work.git.staging import stage
from mam.work.git.worktrees import branch_commit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Job, Json
    from mam.work.job_dir import JobDirectory

TITLE_LIMIT = 72
_MAM = (
    ("user.name", "mam"), ("user.email", "mam@localhost"), ("author.name", "mam"), ("author.email", "mam@localhost"),
    ("committer.name", "mam"), ("committer.email", "mam@localhost"),
)  # fmt: skip


def commit_worktree(job: Job, job_dir: JobDirectory, plan: Json, lock: int, *, is_wip: bool) -> tuple[str, list[str]]:
    """The last commit of the job's branch, and the nested repositories that it does not contain."""
    git = at(plan["git_directory"], job_dir.worktree, (lock,))
    nested = stage(git, job_dir.worktree).nested
    if not git.succeeds("diff", "--cached", "--quiet", "--no-ext-diff", "--no-textconv"):
        message = _message(job, is_wip=is_wip)
        with_author(git).text("commit", "--quiet", "--no-verify", "-m", message, seconds=LONG_SECONDS)
    tip = git.path("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    return _moved_branch(plan, tip, lock), nested


def _moved_branch(plan: Json, tip: str, lock: int) -> str:
    """The agent may have left its branch; its HEAD counts if it descends from the branch."""
    repository = at(plan["repository"], keep_open=(lock,))
    branch = branch_commit(repository, plan["branch"])
    if branch == tip:
        return tip
    if branch is not None and not repository.succeeds("merge-base", "--is-ancestor", branch, tip):
        return branch
    repository.text("update-ref", f"refs/heads/{plan['branch']}", tip, *([branch] if branch else []))
    return tip


def with_author(git: Git) -> Git:
    """The user is the author. mam is, if git's configuration does not name the user."""
    strict = git.replace(settings=(*git.settings, ("user.useConfigOnly", "true")))
    is_known = strict.succeeds("var", "GIT_AUTHOR_IDENT") and strict.succeeds("var", "GIT_COMMITTER_IDENT")
    return git if is_known else git.replace(settings=(*git.settings, *_MAM))


def _message(job: Job, *, is_wip: bool) -> str:
    wip = "wip: " if is_wip else ""
    return f"{wip}{title(job)}\n\nWhat {job.agent} had not committed itself.\n\nMam-Job: {job.job_id}\n"


def title(job: Job) -> str:
    """The first line of the prompt with text in it, as a title."""
    line = next((line for line in job.prompt.splitlines() if line.strip(" #\t")), "work")
    return short_line(line.strip(" #\t"))


def short_line(text: str) -> str:
    """One short line of printable characters."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return line if len(line) <= TITLE_LIMIT else f"{line[: TITLE_LIMIT - 1]}…"
