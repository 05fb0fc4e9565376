"""Checks the expected artifacts of a job: regular files with content, inside its directory.

Hard links are accepted: build tools make them, and their content is in the workspace.
"""

from __future__ import annotations

import os
import stat

from mam.errors import ArtifactMissing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    from mam.jobs.record import Job

    Found = TypeVar("Found")

_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_CHUNK = 1 << 20
DIGEST_LIMIT = 1 << 28


class BadArtifact(Exception):
    """What is wrong with an artifact, as the predicate of a sentence about it."""


def check_artifacts(job: Job) -> None:
    """Raises ArtifactMissing for the first artifact that is not a regular file, or that a symbolic link leads to."""
    for missing in missing_artifacts(job):
        raise missing


def missing_artifacts(job: Job) -> Iterator[ArtifactMissing]:
    for artifact in job.expected_artifacts:
        # Only an old record can hold an absolute path; registration refuses it.
        root = "/" if artifact.startswith("/") else job.workdir or os.getcwd()
        try:
            artifact_size(root, artifact.lstrip("/"))
        except BadArtifact as unfit:
            yield ArtifactMissing(job=job.job_id, artifact=artifact, problem=str(unfit))


def artifact_size(directory: str, artifact: str) -> int:
    """The size of an artifact in bytes; BadArtifact if it is not accepted."""
    return _with_parent(directory, artifact, _stat_size)


def artifact_digest(directory: str, artifact: str) -> tuple[int, str | None]:
    """Its size and SHA-256, of the same open file; no SHA-256 above DIGEST_LIMIT, since reading would take seconds."""
    return _with_parent(directory, artifact, _read_digest)


def artifact_content(directory: str, artifact: str, limit: int) -> bytes:
    """Its content; BadArtifact also if it has more than `limit` bytes."""
    data = _with_parent(directory, artifact, lambda parent, name: _read_content(parent, name, limit))
    if len(data) > limit:
        raise BadArtifact(f"has more than {limit:,} bytes")
    return data


def _with_parent(directory: str, artifact: str, look: Callable[[int, str], Found]) -> Found:
    """Opens one directory after the other, so that no symbolic link is followed, and calls `look` in the last one."""
    names = [name for name in artifact.split("/") if name not in ("", ".")]
    if ".." in names or not names or artifact.startswith("/"):
        raise BadArtifact("is not a path inside the job's directory")
    try:
        parent = os.open(directory, _DIRECTORY_FLAGS)
    except OSError as error:
        raise BadArtifact(f"cannot be looked for in {directory}: {error.strerror}") from None
    except ValueError:
        raise BadArtifact(f"cannot be looked for in {directory!a}, which no directory can be called") from None
    try:
        for name in names[:-1]:
            below = _enter(parent, name)
            os.close(parent)
            parent = below
        return look(parent, names[-1])
    except FileNotFoundError:
        raise BadArtifact(f"is not there (looked in {directory})") from None
    except OSError as error:
        raise BadArtifact(f"cannot be reached: {error.strerror}") from None
    except ValueError:
        raise BadArtifact("is not a name that a file can have") from None
    finally:
        os.close(parent)


def _enter(parent: int, name: str) -> int:
    try:
        return os.open(name, _DIRECTORY_FLAGS | os.O_NOFOLLOW, dir_fd=parent)
    except NotADirectoryError:
        is_link = stat.S_ISLNK(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
        raise BadArtifact(f"cannot be reached: {name!a} is {'a link' if is_link else 'not a directory'}") from None


def _stat_size(parent: int, name: str) -> int:
    return _checked_size(os.stat(name, dir_fd=parent, follow_symlinks=False))


def _checked_size(found: os.stat_result) -> int:
    if stat.S_ISLNK(found.st_mode):
        raise BadArtifact("is a link, not a file")
    if not stat.S_ISREG(found.st_mode):
        raise BadArtifact("is not a regular file")
    if not found.st_size:
        raise BadArtifact("is empty")
    return found.st_size


def _read_digest(parent: int, name: str) -> tuple[int, str | None]:
    import hashlib

    descriptor = _open_checked(parent, name)
    try:
        size, digest = _checked_size(os.fstat(descriptor)), hashlib.sha256()
        if size > DIGEST_LIMIT:
            return size, None
        for offset in range(0, size, _CHUNK):  # not further, even if the file grows
            digest.update(os.pread(descriptor, min(_CHUNK, size - offset), offset))
        return size, digest.hexdigest()
    finally:
        os.close(descriptor)


def _read_content(parent: int, name: str, limit: int) -> bytes:
    with os.fdopen(_open_checked(parent, name), "rb") as file:
        _checked_size(os.fstat(file.fileno()))
        return file.read(limit + 1)


def _open_checked(parent: int, name: str) -> int:
    """The file may be replaced before it is open, so the caller checks the descriptor again; O_NONBLOCK does not wait
    for a pipe."""
    _stat_size(parent, name)
    return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
