"""The diff of a job for review, and the comments that go back to the agent as one continuation.

A comment names the blob that it was made on. If the file has another content when the review is sent, the comment is
sent as one of an earlier state.
"""

from __future__ import annotations

import os
import threading

from mam.errors import BadInput
from mam.jobs.diff_comments import Comment, review_prompt
from mam.serve.pages.actions import continue_hindrance, short_id
from mam.serve.pages.diffs import Diff, read_diff
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from mam.access.reading import AuthorizedReading
    from mam.jobs.record import Job

COMMENTS_MOST, COMMENT_LIMIT = 200, 20_000


class Review(Frozen):
    diff: Diff | None
    why_none: str = ""
    is_shared: bool = False
    """Whether others may have worked in the same directory."""
    file: str | None = None
    """The only file that is shown, of a large diff."""
    command: str = ""
    hindrance: str = ""
    """Why no review can be sent."""


def review_of(reading: AuthorizedReading, job: Job, file: str | None = None) -> Review:
    """`file` shows the lines of this file alone."""
    command = f"mam diff {short_id(job)} --comment"
    try:
        diff, is_shared = _read(reading, job, file)
    except _NoDiff as none:
        return Review(diff=None, why_none=str(none), command=command)
    return Review(
        diff=diff, is_shared=is_shared, file=file, command=command, hindrance=continue_hindrance(job, reading.viewer)
    )


def prompt_of_review(reading: AuthorizedReading, job: Job, remark: str, fields: Sequence[Mapping[str, str]]) -> str:
    """The prompt of the continuation. Each comment has `path`, `line`, `code`, `blob` and `text`."""
    comments = [_parsed(one) for one in fields if one.get("text", "").strip()]
    if len(comments) > COMMENTS_MOST:
        raise BadInput(why=f"a review has at most {COMMENTS_MOST} comments")
    if remark.strip():
        comments.append(("", Comment(path="", line=0, code="", text=remark.strip()[:COMMENT_LIMIT])))
    if not comments:
        raise BadInput(why="the review has no comment yet; write one, or a remark on the whole change")
    try:
        diff: Diff | None = _read(reading, job, "")[0]
    except _NoDiff:
        diff = None
    return review_prompt([_dated(comment, blob, diff) for blob, comment in comments])


def _parsed(fields: Mapping[str, str]) -> tuple[str, Comment]:
    line, text = fields.get("line", "0"), fields["text"].strip()
    if len(text) > COMMENT_LIMIT:
        raise BadInput(why=f"a comment has at most {COMMENT_LIMIT:,} characters")
    number = int(line) if line.isascii() and line.isdigit() and len(line) < 9 else 0
    path, code = fields.get("path", "")[:4_096], fields.get("code", "")[:400].replace("\n", " ")
    return fields.get("blob", "")[:64], Comment(path=path, line=number, code=code, text=text)


def _dated(comment: Comment, blob: str, diff: Diff | None) -> Comment:
    if not blob or diff is None or not comment.path:
        return comment
    file = diff.find(comment.path)
    return comment.replace(is_outdated=file is None or file.blob != blob)


class _NoDiff(Exception):
    """Why there is none, as a sentence."""


def _read(reading: AuthorizedReading, job: Job, only: str | None) -> tuple[Diff, bool]:
    from mam.work.git.command import GitFailed
    from mam.work.git.diffs import DiffMissing, job_diff

    try:
        found = job_diff([job], *_directories(reading, job))
        return read_diff(found.stream(), only), found.shared
    except DiffMissing as missing:
        return read_diff(_stored(reading, job, str(missing)), only), False
    except GitFailed as failed:
        raise _NoDiff(f"git cannot show the changes: {failed}.") from None


def _stored(reading: AuthorizedReading, job: Job, why: str) -> Iterable[bytes]:
    """The diff that the worker copied into the store."""
    from mam.stores.outputs import DIFF

    data = reading.registry.store.outputs.get(job.job_id, job.attempt, DIFF) if job.attempt else None
    if data is None:
        raise _NoDiff(f"There is no diff: {why}.")

    def parts() -> Iterator[bytes]:
        yield data

    return parts()


def _directories(reading: AuthorizedReading, job: Job) -> tuple[str, str]:
    """The work directory of this store, and the prefix of private files in it."""
    from mam.work.state_dirs import private_prefix, work_directory

    directory = work_directory(reading.registry.store.address)
    return directory, f"{private_prefix(directory, job.job_id, job.attempt)}.page-{os.getpid()}-{threading.get_ident()}"
