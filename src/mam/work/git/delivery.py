"""Delivers the work of a job that names a repository: commits it, pushes the branch, and opens a pull request if asked.

The agent has ended and its work was checked. mam commits what the agent left uncommitted. Without
changes there is no branch.
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
from mam.work.git.commits import commit_worktree, short_line, title
from mam.work.git.mirrors import guarded_service, is_local, locked_mirror, redact_address, repository_address
from mam.work.git.worktrees import read_plan
from mam.work.job_dir import JobDirectory, write_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mam.jobs.record import Job, Json

COMMAND = (
    "gh", "pr", "create", "--repo", "{name}", "--head", "{branch}", "--base", "{base}", "--title", "{title}",
    "--body-file", "{body}",
)  # fmt: skip
_TRIES, _PAUSE_SECONDS = 3, 2.0
_COMMAND_SECONDS = 120.0


class Delivery(Frozen):
    run: Json
    """For the record: branch, commits, pushed, pull_request."""
    reason: str | None = None
    """Why the work is done but could not be delivered; the reason names where it is."""
    is_clean: bool = False
    """Whether the worktree contains nothing that is not stored elsewhere, so that it may be removed once the job has
    ended."""


class Undelivered(Exception):
    """One line for the record."""


def deliver(job: Job, work_directory: str, repos: Mapping[str, str], command: Sequence[str], private: str) -> Delivery:
    """`private` is the prefix of the attempt's own files; the text of a pull request is one of them."""
    job_dir = JobDirectory(work_directory, job.workspace_id)
    plan = read_plan(job_dir)
    assert plan is not None
    assert job.repository is not None
    with job_dir.locked() as lock:
        try:
            tip, nested = commit_worktree(job, job_dir, plan, lock, is_wip=False)
            git = at(plan["repository"], keep_open=(lock,))
            commits = int(git.path("rev-list", "--count", f"{plan['base']}..{tip}"))
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


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{short_line(names[0])}{more}"


def remove_clean_worktree(work_directory: str, job_id: str) -> None:
    """Removes the worktree of an ended job. Its branch stays while it has commits that exist nowhere else. Not before
    the end: after a kill, the next worker continues with the worktree."""
    try:
        if _is_clear(JobDirectory(work_directory, job_id)):
            remove_workspace(work_directory, job_id, force=True)
    except (MamError, GitFailed, OSError):
        return  # `mam workspaces` lists it


def _is_clear(job_dir: JobDirectory) -> bool:
    held = inspect_workspace(job_dir)
    return held is not None and not held.dirty and held.problem is None


# -- handing on ------------------------------------------------------------------------------------------------------


def _push_branch(
    job: Job, plan: Json, repos: Mapping[str, str], command: Sequence[str], private: str, facts: Json
) -> None:
    """A repository on this host always gets the branch; a remote one only if the job asks for it."""
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
        # So that a later removal of the worktree finds its commits elsewhere.
        tip = git.path("rev-parse", "--verify", "--quiet", ref)
        at(plan["repository"]).succeeds("update-ref", f"refs/remotes/origin/{plan['branch']}", tip)
        git.succeeds("update-ref", "-d", ref)
        facts["pushed"] = str(repository["name"])
        if wants_request:
            try:
                facts["pull_request"] = _request(job, plan, command, private, transport)
            except Undelivered as failed:
                if job.continues is None:
                    raise
                facts["note"] = f"{failed}; an earlier job of its chain may have opened it"


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
    """Runs outside of the work tree, whose settings the agent could write."""
    body = f"{private}.pull-request.md"
    text = f"{job.prompt}\n\n---\nJob `{job.job_id}`, by {job.agent}.\n"
    write_private(body, text.encode(errors="replace"))
    repository = job.repository or {}
    words = {
        "name": repository["name"], "branch": plan["branch"], "base": repository.get("branch"), "title": title(job),
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
    """Replaces whole words only, once, and nothing inside of a value."""
    for name, value in words.items():
        if word == f"{{{name}}}":
            return str(value)
    return word
