"""The record files of a files store: `<job_id>.json` and `<job_id>.events.log`, the readable mirror of its database.

Every path is a bare name below one directory descriptor. mam does not follow links, and does not read devices or files
of other users. A record file ends with `registry`: the epoch of the database, the version of the row, and a digest of
the text before it. mam wrote a file whose digest matches, however old it is.
"""

from __future__ import annotations

import errno
import os
import stat

try:
    from _blake2 import blake2b  # hashlib loads OpenSSL, which costs every verb
except ImportError:
    from hashlib import blake2b

from mam.errors import BadInput, BadRecord
from mam.jobs.record import parse_job, split_secrets
from mam.stores.private_files import sync_directory
from mam.util.encoding import encode_by_line, to_bytes, to_json_text, write_all
from mam.util.frozen import Frozen
from mam.util.strict_json import strict_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.jobs.change import AuditRecord
    from mam.jobs.record import Job, Json

SIZE_LIMIT = 64 * 1024 * 1024
REGISTRY = "registry"
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # NONBLOCK: the file may be a pipe
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_PROBLEMS = {
    errno.ELOOP: "is a link",
    errno.EACCES: "may not be read",
    errno.ENXIO: "is not a regular file",
    errno.EISDIR: "is a directory",
}
_TRAILER = b',\n  "registry": {"epoch": "%s", "version": %d, "digest": "%s"}\n}\n'
_TRAILER_START = b',\n  "registry": {"epoch": "'
_TRAILER_LIMIT = 256


class RecordStamp(Frozen):
    """The end of a record file: the database and the version that it was written from."""

    epoch: str
    version: int


class ParsedRecord(Frozen):
    """The content of a record file."""

    job: Job
    field_names: frozenset[str]
    """The fields that the file has."""
    secrets: dict[str, Any]
    stamp: RecordStamp | None
    """None when another program wrote or changed the file."""


def record_name(job_id: str) -> str:
    return f"{_bare(job_id)}.json"


def events_name(job_id: str) -> str:
    return f"{_bare(job_id)}.events.log"


def _bare(job_id: str) -> str:
    """A damaged or forged database may contain an id that is a path."""
    if "/" in job_id or "\0" in job_id:
        raise BadRecord(file=repr(job_id), problem="is not the name of a record file")
    return job_id


def record_text(job: Job, stamp: RecordStamp) -> bytes:
    text = encode_by_line(job.to_json(), to_bytes)[: -len(b"\n}\n")]
    if len(text) > SIZE_LIMIT:
        size = f"{len(text):,} bytes; at most {SIZE_LIMIT:,} are kept"
        raise BadInput(why=f"the record of job {job.job_id} would have {size}")
    return text + _TRAILER % (stamp.epoch.encode(), stamp.version, _digest(text, stamp))


def read_stamp(text: bytes) -> RecordStamp | None:
    """None when another program wrote or changed the file."""
    at = text.rfind(_TRAILER_START, max(0, len(text) - _TRAILER_LIMIT))
    if at < 0:
        return None
    try:
        fields = strict_json(b"{" + text[at + 1 :])[REGISTRY]
        stamp = RecordStamp(epoch=fields["epoch"], version=fields["version"])
        is_own = text[at:] == _TRAILER % (stamp.epoch.encode(), stamp.version, _digest(text[:at], stamp))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return stamp if is_own else None


def _digest(text: bytes, stamp: RecordStamp) -> bytes:
    made = blake2b(text, digest_size=16)
    made.update(b"%s %d" % (stamp.epoch.encode(), stamp.version))
    return bytes(made.hexdigest().encode())


class RecordFiles:
    """The directory of a registry."""

    def __init__(self, path: str, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor
        self._owner = os.fstat(descriptor).st_uid
        """The user, or another one whose store the user has approved."""

    # -- reading -----------------------------------------------------------------------------------------------------

    def ids(self, limit: int | None = None) -> list[str]:
        """The ids of the jobs that have a record file, in no order."""
        from mam.jobs.input_rules import is_job_id

        found = []
        with os.scandir(self._descriptor) as entries:
            for entry in entries:
                if entry.name.endswith(".json") and is_job_id(entry.name[:-5]):
                    found.append(entry.name[:-5])
                    if limit is not None and len(found) >= limit:
                        break
        return found

    def read_bytes(self, job_id: str) -> bytes | None:
        """The bytes of a record file, None when there is none; BadRecord unless it is a regular file of the user."""
        name = record_name(job_id)
        try:
            descriptor = os.open(name, _READ, dir_fd=self._descriptor)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno not in _PROBLEMS:
                raise  # the disk or the system is at fault, not this file
            raise self._error(name, _PROBLEMS[error.errno]) from None
        try:
            self._check_kind(name, found := os.fstat(descriptor))
            return _read_all(descriptor, found.st_size)
        finally:
            os.close(descriptor)

    def read(self, job_id: str) -> ParsedRecord:
        """Raises FileNotFoundError, or BadRecord for anything that is not a sound record of this job."""
        name, text = record_name(job_id), self.read_bytes(job_id)
        if text is None:
            raise FileNotFoundError(name)
        try:
            fields = strict_json(text)
        except ValueError:
            problem = "is not whole, valid JSON" if text.strip() else "is empty"
            raise self._error(name, problem) from None
        try:
            to_json_text(fields).encode()
        except UnicodeEncodeError:
            raise self._error(name, "holds half of a surrogate pair, which is no character") from None
        secrets: Json = {}
        if isinstance(fields, dict):
            fields.pop(REGISTRY, None)
            fields, secrets = split_secrets(fields)
        job = parse_job(fields, self._label(name))
        if job.job_id != job_id:
            raise self._error(name, f"it says that it is job {job.job_id}")
        return ParsedRecord(job=job, field_names=frozenset(fields), secrets=secrets, stamp=read_stamp(text))

    def _check_kind(self, name: str, found: os.stat_result) -> None:
        if not stat.S_ISREG(found.st_mode):
            raise self._error(name, "is a directory" if stat.S_ISDIR(found.st_mode) else "is not a regular file")
        if found.st_uid not in (os.geteuid(), self._owner):
            raise self._error(name, f"belongs to another user (uid {found.st_uid})")
        if found.st_size > SIZE_LIMIT:
            raise self._error(name, f"has {found.st_size:,} bytes, which no record has")

    def _error(self, name: str, problem: str) -> BadRecord:
        return BadRecord(file=self._label(name), problem=problem)

    def _label(self, name: str) -> str:
        return os.path.join(self._path, name)

    # -- writing, under the store's lock -------------------------------------------------------------------------------

    def prepare(self, job_id: str, text: bytes, *, durable: bool = False) -> str:
        """Writes the record under a temporary name. A full disk fails here, before the commit."""
        temporary = f".{job_id}.tmp"
        try:
            descriptor = os.open(temporary, _CREATE, 0o600, dir_fd=self._descriptor)
        except FileExistsError:
            temporary = self._free_name(temporary)
            descriptor = os.open(temporary, _CREATE, 0o600, dir_fd=self._descriptor)
        try:
            write_all(descriptor, text)
            if durable:
                os.fsync(descriptor)
        except BaseException:
            self.remove(temporary)  # frees its space on a full disk
            raise
        finally:
            os.close(descriptor)
        return temporary

    def _free_name(self, temporary: str) -> str:
        """Removes the file of a killed writer; returns another name if that fails."""
        try:
            self.remove(temporary)
        except OSError:
            return f"{temporary[: -len('.tmp')]}.{os.urandom(4).hex()}.tmp"
        return temporary

    def publish(self, temporary: str, job_id: str) -> None:
        self._rename(temporary, record_name(job_id))

    def _rename(self, name: str, other: str) -> None:
        os.rename(name, other, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def save_aside(self, job_id: str, aside: str) -> None:
        """Keeps a copy of a file that another program wrote. The file itself stays until mam's rename replaces it, so
        that there is always a record."""
        name, target = record_name(job_id), _name_in(aside, job_id, ".json")
        try:
            os.link(name, target, src_dir_fd=self._descriptor, follow_symlinks=False)
        except OSError:  # a directory, or a file system without links
            os.rename(name, target, src_dir_fd=self._descriptor)
        sync_directory(aside)

    def remove(self, name: str) -> None:
        try:
            os.unlink(name, dir_fd=self._descriptor)
        except FileNotFoundError:
            pass

    def sync(self) -> None:
        os.fsync(self._descriptor)

    # -- event logs ----------------------------------------------------------------------------------------------------

    def append_events(self, job_id: str, events: list[AuditRecord]) -> None:
        """Raises OSError for a log that is not a regular file; the next repair replaces it."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(events_name(job_id), flags, 0o600, dir_fd=self._descriptor)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(errno.EINVAL, "is not a regular file")
            write_all(descriptor, _log_text(events))
        finally:
            os.close(descriptor)

    def replace_events(self, job_id: str, events: list[AuditRecord], aside: str) -> None:
        name, temporary = events_name(job_id), self.prepare(f"{job_id}.events", _log_text(events))
        try:
            self._rename(temporary, name)
        except IsADirectoryError:
            os.rename(name, _name_in(aside, job_id, ".events.log"), src_dir_fd=self._descriptor)
            self._rename(temporary, name)

    def events(self, job_id: str) -> list[AuditRecord]:
        """The readable events of a log, in the order of their numbers."""
        try:
            descriptor = os.open(events_name(job_id), _READ, dir_fd=self._descriptor)
        except OSError:
            return []
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return []
            found = [event for event in map(_parse_event, file) if event is not None]
        return sorted(found, key=lambda event: int(event["seq"]))


def complete_events(events: list[AuditRecord], last_seq: int) -> list[AuditRecord]:
    """The events of a log, with markers for the missing numbers up to `last_seq`."""
    whole: list[AuditRecord] = []
    upto = 0
    for event in events:
        first, last = int(event["seq"]), int(event["upto"] if "upto" in event else event["seq"])
        if first <= upto or last > last_seq:
            continue
        if first > upto + 1:
            whole.append({"marker": "imported", "seq": upto + 1, "upto": first - 1})
        whole.append(event)
        upto = last
    if upto < last_seq:
        whole.append({"marker": "imported", "seq": upto + 1, "upto": last_seq})
    return whole


def _name_in(aside: str, job_id: str, suffix: str) -> str:
    os.makedirs(aside, mode=0o700, exist_ok=True)
    return os.path.join(aside, f"{job_id}.{os.urandom(4).hex()}{suffix}")


def _log_text(events: list[AuditRecord]) -> bytes:
    return b"".join(to_bytes(event) + b"\n" for event in events)


def _parse_event(line: bytes) -> AuditRecord | None:
    """None for an incomplete line, or one in another format."""
    try:
        event = strict_json(line)
    except ValueError:
        return None
    if not isinstance(event, dict):
        return None
    return event if type(event.get("seq")) is int and type(event.get("upto", 1)) is int else None


def _read_all(descriptor: int, size: int) -> bytes:
    parts = []
    while part := os.read(descriptor, size + 1):
        parts.append(part)
    return b"".join(parts)
