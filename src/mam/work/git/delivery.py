"""What becomes of the work of a job for a repository: committed, counted, pushed, and a pull request opened if asked.

The agent is gone by then, and its work was checked. What it left uncommitted is committed by mam, as mam. Without any
change there is no branch either.
"""

from __future__ import annotations

import os
import subprocess
import time

from mam.errors import MamError
from mam.machine.environment import find_program, without_secrets
from mam.util.frozen import Frozen
from mam.work.cleanup import inspect_workspace, remove_workspace
from mam.work.git.command import LONG_SECONDS, Git, GitFailed, at, with_transports
from mam.work.git.mirrors import guarded_service, is_local, locked_mirror, redact_address, repository_address
from mam.work.git.staging import stage
from mam.work.git.worktrees import branch_commit, read_plan
from mam.work.job_dir import JobDirectory, write_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mam.jobs.record import Job, Json

COMMAND = (
    "gh", "pr", "create", "--repo", "{name}", "--head", "{branch}", "--base", "{base}", "--title", "{title}",
    "--body-file", "{body}",
)  # fmt: skip
_WHO = tuple(
    (f"{who}.{key}", value)
    for who in ("user", "author", "committer")
    for key, value in (("name", "mam"), ("email", "mam@localhost"))
)
_TRIES, _PAUSE_SECONDS = 3, 2.0
_COMMAND_SECONDS = 120.0
_TITLE_LIMIT = 72


class Delivery(Frozen):
    run: Json
    """For the record: branch, commits, pushed, pull_request."""
    reason: str | None = None
    """Why the work is done and could not be handed on; it is kept, and the reason says where."""
    is_clean: bool = False
    """Whether nothing is left in the worktree that is nowhere else, so that it may go once the job has ended."""


class Undelivered(Exception):
    """One line for the record."""


def deliver(job: Job, work_directory: str, repos: Mapping[str, str], command: Sequence[str], private: str) -> Delivery:
    """`private` is how the names of the attempt's own files begin; one is the text of a pull request."""
    job_dir = JobDirectory(work_directory, job.job_id)
    plan = read_plan(job_dir)
    assert plan is not None
    assert job.repository is not None
    with job_dir.locked() as lock:
        try:
            commits, nested = _committed(job, job_dir, plan, lock)
        except (GitFailed, OSError) as failed:
            return Delivery(run={}, reason=f"its work could not be committed: {failed}; it is in {job_dir.worktree}")
    facts: Json = {"branch": plan["branch"] if commits else None, "commits": commits}
    if not commits:
        facts["note"] = "it changed nothing, so there is no branch"
    if nested:
        facts["note"] = f"mam commits no nested repository; in the worktree is {_some(nested)}"
    reason = None
    if commits and job.workdir is None:
        try:
            _push_branch(job, plan, repos, command, private, facts)
        except (GitFailed, Undelivered, MamError, OSError) as failed:
            reason = f"its work is committed on {plan['branch']} in {plan['repository']}, but {failed}"
    is_clean = reason is None and _is_clear(job_dir)
    if is_clean:
        facts["place"] = None
    return Delivery(run=facts, reason=reason, is_clean=is_clean)


def remove_clean_worktree(work_directory: str, job_id: str) -> None:
    """The worktree of a job that has ended. Its branch stays for as long as it has commits that are nowhere else,
    whatever force means to files. Not before the end: a worker that is killed just then goes on with what is there."""
    try:
        if _is_clear(JobDirectory(work_directory, job_id)):
            remove_workspace(work_directory, job_id, force=True)
    except (MamError, GitFailed, OSError):
        return  # `mam workspaces` shows it


def _is_clear(job_dir: JobDirectory) -> bool:
    held = inspect_workspace(job_dir)
    return held is not None and not held.dirty and held.problem is None


# -- commits ---------------------------------------------------------------------------------------------------------


def _committed(job: Job, job_dir: JobDirectory, plan: Json, lock: int) -> tuple[int, list[str]]:
    """How many commits there are, and the nested repositories that are in none."""
    git = at(plan["git_directory"], job_dir.worktree, (lock,))
    git = git.replace(settings=(*git.settings, *_WHO))
    nested = stage(git, job_dir.worktree)
    if not git.succeeds("diff", "--cached", "--quiet", "--no-ext-diff", "--no-textconv"):
        git.text("commit", "--quiet", "--no-verify", "-m", _message(job), seconds=LONG_SECONDS)
    tip = git.path("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    repository = at(plan["repository"], keep_open=(lock,))
    branch = branch_commit(repository, plan["branch"])
    # An agent may have left its branch; what it stands on counts if it comes after what the branch has.
    if branch != tip and (branch is None or repository.succeeds("merge-base", "--is-ancestor", branch, tip)):
        repository.text("update-ref", f"refs/heads/{plan['branch']}", tip, *([branch] if branch else []))
        branch = tip
    return int(repository.path("rev-list", "--count", f"{plan['base']}..{branch}")), nested


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{_line(names[0])}{more}"


def _message(job: Job) -> str:
    return f"{_title(job)}\n\nWhat {job.agent} had not committed itself.\n\nmam-job: {job.job_id}\n"


def _title(job: Job) -> str:
    """The first line of the prompt that says something, as a title."""
    line = next((line for line in job.prompt.splitlines() if line.strip(" #\t")), "work")
    return _line(line.strip(" #\t"))


def _line(text: str) -> str:
    """One short line that a terminal can show."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return line if len(line) <= _TITLE_LIMIT else f"{line[: _TITLE_LIMIT - 1]}…"


# -- handing on ------------------------------------------------------------------------------------------------------


def _push_branch(
    job: Job, plan: Json, repos: Mapping[str, str], command: Sequence[str], private: str, facts: Json
) -> None:
    """A repository that is a directory here always gets the branch; one elsewhere only if that was asked for."""
    repository = job.repository or {}
    address = repository_address(job, repos)
    wants_request = bool(repository.get("pull_request"))
    if not (is_local(address) or repository.get("push") or wants_request):
        facts["kept"] = f"git fetch {plan['repository']} {plan['branch']}"
        return
    with locked_mirror(address, str(repository["name"])) as (transport, _work, lock):
        git = with_transports(at(transport, keep_open=(lock,)))
        ref = f"refs/heads/{plan['branch']}"
        end, source = guarded_service("upload-pack", plan["repository"]), plan["repository"]
        git.text("fetch", "--no-tags", "--quiet", *end, "--", source, f"+{ref}:{ref}", seconds=LONG_SECONDS)
        _push(git, address, ref)
        # So that whoever clears the worktree away knows that its commits are elsewhere too.
        tip = git.path("rev-parse", "--verify", "--quiet", ref)
        at(plan["repository"]).succeeds("update-ref", f"refs/remotes/origin/{plan['branch']}", tip)
        git.succeeds("update-ref", "-d", ref)
        facts["pushed"] = str(repository["name"])
        if wants_request:
            facts["pull_request"] = _request(job, plan, command, private, transport)


def _push(git: Git, address: str, ref: str) -> None:
    for remaining in reversed(range(_TRIES)):
        try:
            end = guarded_service("receive-pack", address)
            git.text("push", "--quiet", "--no-verify", *end, "--", address, f"{ref}:{ref}", seconds=LONG_SECONDS)
            return
        except GitFailed as failed:
            if not remaining:
                raise Undelivered(f"it could not be pushed: {redact_address(str(failed), address)}") from None
            time.sleep(_PAUSE_SECONDS)


def _request(job: Job, plan: Json, command: Sequence[str], private: str, transport: str) -> str:
    """Away from the work tree, whose settings the agent could write."""
    body = f"{private}.pull-request.md"
    text = f"{job.prompt}\n\n---\nJob `{job.job_id}`, by {job.agent}.\n"
    write_private(body, text.encode(errors="replace"))
    repository = job.repository or {}
    words = {
        "name": repository["name"], "branch": plan["branch"], "base": repository.get("branch"), "title": _title(job),
        "body": body, "job_id": job.job_id,
    }  # fmt: skip
    argv = [_filled(word, words) for word in command]
    program = find_program(argv[0], os.environ)
    if program is None:
        raise Undelivered(f"no pull request could be opened: {argv[0]} is not on PATH")
    try:
        ran = subprocess.run(
            [program, *argv[1:]], cwd=transport, env=without_secrets(os.environ), stdin=subprocess.DEVNULL,
            capture_output=True, timeout=_COMMAND_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise Undelivered(f"no pull request could be opened: {argv[0]} was not done within 120 s") from None
    except OSError as error:
        raise Undelivered(f"no pull request could be opened: {argv[0]}: {error.strerror}") from None
    said = (ran.stdout if ran.returncode == 0 else ran.stderr or ran.stdout).decode(errors="replace").strip()
    last = "".join(letter if letter.isprintable() else " " for letter in said.rpartition("\n")[2])[:400]
    if ran.returncode:
        raise Undelivered(f"no pull request could be opened: {argv[0]} ended with {ran.returncode}: {last}")
    return last or "opened"


def _filled(word: str, words: Json) -> str:
    """Each name once, and nothing inside of what was filled in."""
    for name, value in words.items():
        if word == f"{{{name}}}":
            return str(value)
    return word
