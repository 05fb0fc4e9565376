"""What attempts leave behind, in a directory beside a local store.

    JOB/ATTEMPT-CLAIM.head          the beginning of the output, in pieces
    JOB/ATTEMPT-CLAIM.tail, .older  its end: a full `.tail` becomes `.older`
    JOB/ATTEMPT-CLAIM.files         a JSON line for each stored file
    content/SHA256                  the content of stored files

A piece is a header (offset, length, checksum) and its bytes. A writer that was killed leaves a torn piece at the end,
which readers ignore and the next writer cuts off. The names contain the claim, so the attempt of a store that went back
to an earlier state never adds to the files of another. Output is not synced: a power cut may take its last seconds.
"""

from __future__ import annotations

import hashlib
import os
import struct
from contextlib import contextmanager
from zlib import crc32

from mam.errors import Refused, StoreUnavailable
from mam.jobs.acts import check_latest_claim
from mam.jobs.input_rules import is_job_id
from mam.stores.outputs import Piece, StoredFile, check_piece, in_order
from mam.stores.private_files import make_directories, replace_bytes
from mam.util.encoding import to_bytes, write_all
from mam.util.strict_json import safe_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.stores.outputs import AttemptId, OutputLimits
    from mam.stores.port import Store

_HEADER = struct.Struct(">QII")
_CONTENT = "content"
_HEAD, _TAIL, _OLDER, _FILES = ".head", ".tail", ".older", ".files"
_ADD = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # NONBLOCK: a pipe in the place of a file


class FileOutputs:
    """The port (mam.stores.outputs) in a directory."""

    def __init__(self, store: Store, directory: str) -> None:
        self._store = store
        self._directory = directory
        self._written: dict[str, tuple[list[int], int]] = {}
        """The sizes of the files that this process has added to, and the length of that output."""

    def append(self, attempt: AttemptId, piece: Piece, limits: OutputLimits) -> None:
        check_piece(piece)
        self._check(attempt)
        with self._errors_of_disk():
            self._append(self._path(attempt), piece, limits)

    def _append(self, path: str, piece: Piece, limits: OutputLimits) -> None:
        sizes, last = self._written.get(path, ([], 0))
        if sizes != _sizes(path):
            make_directories(os.path.dirname(path))
            last = _cut_torn_pieces(path)
        new = Piece(start=max(piece.start, last), data=piece.data[max(0, last - piece.start) :])
        if new.data:
            suffix = _HEAD if new.start < limits.head else _TAIL
            if suffix == _TAIL and new.start - _first_offset(path + _TAIL, new.start) >= limits.tail:
                os.replace(path + _TAIL, path + _OLDER)
            self._add(path + suffix, new)
        self._written[path] = _sizes(path), max(last, new.end)

    def read(self, job_id: str, attempt: int, since: int = 0) -> Iterator[Piece]:
        path = self._latest(job_id, attempt)
        return iter(()) if path is None else in_order(_pieces_of(path), since)

    def put(self, attempt: AttemptId, kind: str, path: str, data: bytes, limits: OutputLimits) -> StoredFile:
        self._check(attempt)
        with self._errors_of_disk():
            return self._put(attempt, kind, path, data, limits)

    def _content(self, digest: str) -> bytes:
        with self._errors_of_disk():
            return _read(os.path.join(self._directory, _CONTENT, digest))

    def _put(self, attempt: AttemptId, kind: str, path: str, data: bytes, limits: OutputLimits) -> StoredFile:
        fits, digest = len(data) <= limits.file, hashlib.sha256(data).hexdigest()
        stored = StoredFile(
            attempt=attempt.attempt, kind=kind, path=path, size=len(data), sha256=digest, is_stored=fits
        )
        content = os.path.join(self._directory, _CONTENT, digest)
        if fits:
            make_directories(os.path.dirname(content))
            replace_bytes(content, data)  # again if it is there: it is kept as long as its newest use
            self._set_time(content)
        listed = self._path(attempt) + _FILES
        make_directories(os.path.dirname(listed))
        known = {(one.kind, one.path): one for one in _files_in(listed)}
        known[kind, path] = stored
        replace_bytes(listed, b"".join(to_bytes(one.as_dict()) + b"\n" for one in known.values()))
        self._set_time(listed)
        return stored

    def get(self, job_id: str, attempt: int, kind: str, path: str = "") -> bytes | None:
        for stored in self.files(job_id):
            if (stored.attempt, stored.kind, stored.path) == (attempt, kind, path) and stored.is_stored:
                data = self._content(stored.sha256)
                return data if hashlib.sha256(data).hexdigest() == stored.sha256 else None
        return None

    def files(self, job_id: str) -> list[StoredFile]:
        attempts = sorted({int(name.partition("-")[0]) for name in self._names(job_id) if name.endswith(_FILES)})
        paths = [self._latest(job_id, attempt, _FILES) for attempt in attempts]
        found = [stored for path in paths if path is not None for stored in _files_in(path + _FILES)]
        return sorted(found, key=lambda one: (one.attempt, one.kind, one.path))

    def expire(self, before_ms: int) -> int:
        removed = _remove_old(os.path.join(self._directory, _CONTENT), before_ms)
        for name in _names_in(self._directory):
            if name != _CONTENT and is_job_id(name):
                removed += _remove_old(os.path.join(self._directory, name), before_ms)
                _remove_empty(os.path.join(self._directory, name))
        return removed

    def _check(self, attempt: AttemptId) -> None:
        """Without a lock: an attempt that is lost a moment later has written into its own files only."""
        check_latest_claim(self._store.get(attempt.job_id), attempt.attempt, attempt.claim_id)

    def _path(self, attempt: AttemptId) -> str:
        claim = hashlib.sha256((attempt.claim_id or "").encode()).hexdigest()[:8]
        return os.path.join(self._directory, attempt.job_id, f"{attempt.attempt}-{claim}")

    def _latest(self, job_id: str, attempt: int, *suffixes: str) -> str | None:
        """The files of this attempt; of several claims, those of the last one that wrote."""
        wanted = suffixes or (_HEAD, _TAIL, _OLDER)
        found = [name for name in self._names(job_id) if name.startswith(f"{attempt}-") and name.endswith(wanted)]
        paths = [os.path.join(self._directory, job_id, name) for name in found]
        return max(paths, key=_time_of).rpartition(".")[0] if paths else None

    def _names(self, job_id: str) -> list[str]:
        found = _names_in(os.path.join(self._directory, job_id)) if is_job_id(job_id) else []
        return [name for name in found if name.partition("-")[0].isdigit()]

    def _add(self, path: str, piece: Piece) -> None:
        descriptor = os.open(path, _ADD, 0o600)
        try:
            write_all(descriptor, _HEADER.pack(piece.start, len(piece.data), crc32(piece.data)) + piece.data)
        finally:
            os.close(descriptor)
        self._set_time(path)

    def _set_time(self, path: str) -> None:
        """The store's clock decides when the time of a file is over."""
        now = self._store.clock.now().wall_ms * 1_000_000
        os.utime(path, ns=(now, now), follow_symlinks=False)

    @contextmanager
    def _errors_of_disk(self) -> Iterator[None]:
        """Not StoreUnavailable: an act of a job must not wait until there is room for its output."""
        try:
            yield
        except StoreUnavailable as error:
            raise Refused(why=str(error)) from None
        except OSError as error:
            raise Refused(why=f"{self._directory}: {error.strerror}") from None


def _cut_torn_pieces(path: str) -> int:
    """Returns the length of the output that is left."""
    for suffix in (_HEAD, _TAIL):
        whole = sum(_HEADER.size + len(piece.data) for piece in _pieces_in(path + suffix))
        if _size(path + suffix) != whole:
            os.truncate(path + suffix, whole)
    return max((piece.end for piece in _pieces_of(path)), default=0)


def _sizes(path: str) -> list[int]:
    return [_size(path + suffix) for suffix in (_HEAD, _TAIL)]


def _pieces_of(path: str) -> list[Piece]:
    return [piece for suffix in (_HEAD, _OLDER, _TAIL) for piece in _pieces_in(path + suffix)]


def _pieces_in(path: str) -> Iterator[Piece]:
    """The whole pieces of a file, up to the first torn one."""
    data, position = _read(path), 0
    while position + _HEADER.size <= len(data):
        start, length, checksum = _HEADER.unpack_from(data, position)
        position += _HEADER.size
        part = data[position : position + length]
        if not part or len(part) < length or crc32(part) != checksum:
            return
        yield Piece(start=start, data=part)
        position += length


def _first_offset(path: str, default: int) -> int:
    header = _read(path, _HEADER.size)
    return int(_HEADER.unpack(header)[0]) if len(header) == _HEADER.size else default


def _files_in(path: str) -> list[StoredFile]:
    return [StoredFile(**safe_json(line)) for line in _read(path).splitlines()]


def _read(path: str, most: int = -1) -> bytes:
    try:
        descriptor = os.open(path, _READ)
    except FileNotFoundError:
        return b""
    with os.fdopen(descriptor, "rb") as file:
        return file.read(most)


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except FileNotFoundError:
        return 0


def _time_of(path: str) -> int:
    try:
        return os.lstat(path).st_mtime_ns
    except FileNotFoundError:
        return 0


def _names_in(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _remove_old(directory: str, before_ms: int) -> int:
    removed = 0
    for name in _names_in(directory):
        path = os.path.join(directory, name)
        if 0 < _time_of(path) < before_ms * 1_000_000:
            try:
                os.unlink(path)
                removed += 1
            except OSError:
                continue  # another process removed it, or it is not mam's
    return removed


def _remove_empty(directory: str) -> None:
    try:
        os.rmdir(directory)
    except OSError:
        return  # not empty, or a link
