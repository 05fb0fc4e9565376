"""The record files: read with distrust, written so that a reader sees the old one or the new one, whole.

Every path is a bare name below one directory descriptor; links, devices and other people's files are never followed.
"""

from __future__ import annotations

import errno
import os
import stat
import time

from mam.errors import BadInput, BadRecord
from mam.frozen import Frozen
from mam.jobs.record import parse_job, split_secrets
from mam.strict_json import safe_json
from mam.writing import field_by_line, to_bytes, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from mam.jobs.record import Job, Json
    from mam.stores.files.directory import Directory
    from mam.stores.files.index import Stamp

SIZE_LIMIT = 64 * 1024 * 1024
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # NONBLOCK: a pipe in the place of a file
_PROBLEMS = {
    errno.ELOOP: "is a link",
    errno.EACCES: "may not be read",
    errno.ENXIO: "is not a regular file",
    errno.EISDIR: "is a directory",
}
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


class Found(Frozen):
    """What a record file holds."""

    job: Job
    given: frozenset[str]
    """The names of the fields that the file itself has."""
    secrets: dict[str, Any]
    stamp: Stamp


class Prepared(Frozen):
    """A record under a temporary name, with the space that it needs."""

    temporary: str
    name: str
    text: bytes


class Records:
    """The directory of a registry."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._descriptor = directory.descriptor

    def read(self, job_id: str) -> Found:
        """Raises FileNotFoundError, or BadRecord for anything that is not a sound record of this job."""
        name = file_name(job_id)
        fields, stamp = self._read_fields(name)
        fields, secrets = split_secrets(fields) if isinstance(fields, dict) else (fields, {})
        job = parse_job(fields, self._label(name))
        if job.job_id != job_id:
            raise BadRecord(file=self._label(name), problem=f"it says that it is job {job.job_id}")
        return Found(job=job, given=frozenset(fields), secrets=secrets, stamp=stamp)

    def prepare(self, job_id: str, fields: Json, text: bytes | None = None) -> Prepared:
        """All that can fail for want of space happens here, before the act is committed. `text` is that of the fields,
        for whoever knows it already."""
        text = text or field_by_line(fields, to_bytes)
        if len(text) > SIZE_LIMIT:
            size = f"{len(text):,} bytes; at most {SIZE_LIMIT:,} are kept"
            raise BadInput(why=f"the record of job {job_id} would have {size}")
        temporary = f".{job_id}.{os.urandom(6).hex()}.tmp"
        with self._directory:
            descriptor = os.open(temporary, _CREATE, 0o600, dir_fd=self._descriptor)
        try:
            write_all(descriptor, text)
        except BaseException:
            os.close(descriptor)
            self.discard(temporary)
            raise
        os.close(descriptor)
        return Prepared(temporary=temporary, name=file_name(job_id), text=text)

    def put(self, prepared: Prepared) -> Stamp:
        """Synced only now: until the act is committed nobody needs it, and then the journal has it."""
        descriptor = os.open(prepared.temporary, _READ, dir_fd=self._descriptor)
        try:
            # Given to the nanosecond, so that an edit within the same tick of the file system's clock shows.
            os.utime(descriptor, ns=(now := time.time_ns(), now))
            stamp = stamp_of(os.fstat(descriptor))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        with self._directory:
            os.rename(prepared.temporary, prepared.name, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
        return stamp

    def discard(self, name: str) -> None:
        try:
            with self._directory:
                os.unlink(name, dir_fd=self._descriptor)
        except FileNotFoundError:
            pass

    def stamp(self, job_id: str) -> Stamp:
        """Of a file that could not be read, so that it is looked at again only when it has changed."""
        return stamp_of(os.stat(file_name(job_id), dir_fd=self._descriptor, follow_symlinks=False))

    def exists(self, job_id: str) -> bool:
        try:
            self.stamp(job_id)
        except FileNotFoundError:
            return False
        return True

    def _read_fields(self, name: str) -> tuple[Any, Stamp]:
        try:
            descriptor = os.open(name, _READ, dir_fd=self._descriptor)
        except FileNotFoundError:
            raise
        except OSError as error:
            if error.errno not in _PROBLEMS:
                raise  # the disk or the system is at fault, not this file
            self._refuse(name, _PROBLEMS[error.errno])
        try:
            found = os.fstat(descriptor)
            self._check_kind(name, found)
            data = _read_all(descriptor, found.st_size)
        finally:
            os.close(descriptor)
        try:
            return safe_json(data), stamp_of(found)
        except ValueError:
            self._refuse(name, "is empty" if not data.strip() else "is not whole, valid JSON")

    def _check_kind(self, name: str, found: os.stat_result) -> None:
        if stat.S_ISDIR(found.st_mode):
            self._refuse(name, "is a directory")
        if not stat.S_ISREG(found.st_mode):
            self._refuse(name, "is not a regular file")
        if found.st_uid not in (os.geteuid(), self._directory.owner):
            self._refuse(name, f"belongs to another user (uid {found.st_uid})")
        if found.st_size > SIZE_LIMIT:
            self._refuse(name, f"has {found.st_size:,} bytes, which no record has")

    def _refuse(self, name: str, problem: str) -> NoReturn:
        raise BadRecord(file=self._label(name), problem=problem)

    def _label(self, name: str) -> str:
        return os.path.join(self._directory.path, name)


def file_name(job_id: str) -> str:
    return f"{job_id}.json"


def stamp_of(found: os.stat_result) -> Stamp:
    """Somebody else's file has another stamp than the same file in our hands."""
    inode = found.st_ino if found.st_uid == os.geteuid() else -found.st_ino
    return (inode, found.st_mtime_ns, found.st_size)


def _read_all(descriptor: int, size: int) -> bytes:
    parts = []
    while part := os.read(descriptor, size + 1):
        parts.append(part)
    return b"".join(parts)
