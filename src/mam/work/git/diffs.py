"""The diff of a job, from the objects that `changes.py` noted. git prints it, so it has git's own form and colours; no
command that the repository names runs."""

from __future__ import annotations

import os

from mam.jobs.changed_files import changes_of
from mam.util.frozen import Frozen
from mam.work.git.changes import AFTER, NO_PROGRAMS, commit_leftovers, directory_tree, read_ref
from mam.work.git.command import Git, GitFailed, at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mam.jobs.changed_files import Changes
    from mam.jobs.record import Job

_PLAIN = ("--src-prefix=a/", "--dst-prefix=b/", "--no-relative", *NO_PROGRAMS)
"""The form that `git apply` reads, whatever the repository's configuration says."""


class DiffMissing(Exception):
    """Why there is no diff here, as the end of a sentence."""


class JobDiff(Frozen):
    git: Git
    before: str
    after: str
    shared: bool

    def stream(self, paths: Sequence[str] = (), *, stat: bool = False, colour: bool = False) -> Iterator[bytes]:
        form = "--stat" if stat else "--patch"
        words = ("diff", form, f"--color={'always' if colour else 'never'}", *_PLAIN, self.before, self.after, "--")
        return self.git.stream(*words, *paths)

    def is_coloured(self) -> bool:
        """Whether the user wants colours on a terminal."""
        asked = self.git.path("config", "--get-colorbool", "color.diff", "true")
        return asked == "true" and not os.environ.get("NO_COLOR")


def job_diff(chain: Sequence[Job], work_directory: str, private: str) -> JobDiff:
    """From the beginning of the first job to the end of the last. A running job is shown as it is now; `private` is the
    prefix of files that this needs. Raises DiffMissing and GitFailed."""
    last = chain[-1]
    changes = changes_of(last)
    if changes is None:
        raise DiffMissing(_why_missing(last))
    host = (last.run or {}).get("host")
    if host != os.uname().nodename or not os.path.isdir(changes.repository):
        raise DiffMissing(f"its changes are in {changes.repository} on {host}")
    git = at(changes.repository)
    first = next(found for job in chain if (found := changes_of(job)) is not None and found.shared == changes.shared)
    if last.status.ended:
        if not changes.shared:
            commit_leftovers(last, work_directory)
        after = read_ref(git, last.job_id, AFTER) or _kept(git, changes)
    else:
        after = directory_tree(changes.directory, private)
    if after is None:
        raise DiffMissing("it ended before mam could store its changes")
    return JobDiff(git=git, before=first.before, after=after, shared=changes.shared)


def _kept(git: Git, changes: Changes) -> str | None:
    """The last object without a ref, if git has not removed it: prune removes the refs of archived jobs."""
    for name in (changes.before, changes.after):
        if name is not None and not git.succeeds("cat-file", "-e", name):
            raise DiffMissing(f"git has removed its objects from {changes.repository}")
    return changes.after


def finished_diff(job: Job, limit: int) -> bytes | None:
    """The diff of a job whose changes are noted; None if there is none or it has more than `limit` bytes."""
    changes = changes_of(job)
    if changes is None or changes.after is None or not changes.files:
        return None
    diff = JobDiff(git=at(changes.repository), before=changes.before, after=changes.after, shared=changes.shared)
    parts, size = [], 0
    try:
        for part in diff.stream():
            size += len(part)
            if size > limit:
                return None
            parts.append(part)
    except GitFailed:
        return None
    return b"".join(parts)


def _why_missing(job: Job) -> str:
    problem = ((job.run or {}).get("changes") or {}).get("problem")
    if isinstance(problem, str):
        return f"git failed: {problem}"
    return "it has not run" if job.run is None else "it did not run in a git repository"
