"""The processes of running jobs, on disk before the record names them: one small file per worker, one line per job.

A worker, its keeper and its guardian may be killed together before the start of the agent is reported; the next attempt
has to find what they left. A line is written in place, since creating a file per job costs more on some disks than
everything else. It needs no sync: a power cut ends the agent too.

The first line names the worker. An incomplete line is not JSON and is ignored, as if its writer had been killed before.
"""

from __future__ import annotations

import os
import time
from threading import Lock

from mam.machine.processes import ProcessId, identify, is_alive, pid_namespace
from mam.util.clock import boot_id
from mam.util.encoding import to_bytes
from mam.util.safe_read import read_regular
from mam.util.strict_json import safe_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Job, Json

FOLDER = ".running"
"""No job has such an id."""
LINE = 1024
_LIMIT = 1 << 20
_FORGOTTEN_SECONDS = 30 * 86_400.0
"""After this time a file is removed whose writer cannot be checked from here: on another host, in another container."""
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_WHO = ("worker", "keeper", "agent")


class PidFile:
    """Of one worker; thread-safe. Nothing here raises: an agent may damage the directory, and the disk may be full."""

    def __init__(self, work_directory: str) -> None:
        self._folder = os.path.join(work_directory, FOLDER)
        self._path = ""
        self._descriptor = -1
        self._lock = Lock()
        self._lines: list[Json | None] = []
        """The content of each line; None for a free one."""
        self._left: set[int] = set()
        """Lines of runs that were given up. They stay until their processes have ended."""

    def add(self, job: Job, run: Json) -> int | None:
        """The number of the line, for `remove`; None if it could not be written."""
        entry = {"job_id": job.job_id, "attempt": job.attempt, "host": run["host"], **run["process"]}
        with self._lock:
            try:
                self._open()
                self._remove_dead()
                if None not in self._lines:
                    self._lines.append(None)
                number = self._lines.index(None)
                self._write(number, entry)
            except OSError:
                return None
            self._lines[number] = entry
            return number

    def remove(self, number: int, *, is_tree_gone: bool) -> None:
        with self._lock:
            if self._descriptor < 0:
                return
            if is_tree_gone:
                self._empty(number)
            else:
                self._left.add(number)

    def close(self) -> None:
        """Removes the file too, unless one of its processes may still run. Idempotent."""
        with self._lock:
            if self._descriptor < 0:
                return
            self._remove_dead()
            if not any(self._lines[1:]):
                _unlink(self._path)
            self._shut()
            self._lines, self._left = [], set()

    def _open(self) -> None:
        """Opens the file once, and again if it was removed."""
        if self._descriptor >= 0:
            if os.fstat(self._descriptor).st_nlink:
                return
            self._shut()
        _make(self._folder)
        _sweep(self._folder)
        me = identify(os.getpid())
        self._lines = self._lines or [{"host": os.uname().nodename, "worker": me and me.to_json()}]
        self._path = os.path.join(self._folder, os.urandom(8).hex())
        self._descriptor = os.open(self._path, _CREATE, 0o600)
        try:
            for number, line in enumerate(self._lines):
                self._write(number, line)
        except OSError:
            _unlink(self._path)  # without its first line the file would have no owner
            self._shut()
            raise

    def _shut(self) -> None:
        os.close(self._descriptor)
        self._descriptor = -1

    def _write(self, number: int, line: Json | None) -> None:
        text = b"" if line is None else to_bytes(line)
        if len(text) >= LINE or os.pwrite(self._descriptor, text.ljust(LINE - 1) + b"\n", number * LINE) != LINE:
            raise OSError("no room for it")

    def _empty(self, number: int) -> None:
        try:
            self._write(number, None)
            self._lines[number] = None
        except OSError:
            self._left.add(number)  # tried again with the next line

    def _remove_dead(self) -> None:
        for number in [number for number in self._left if not _has_live_process(self._lines[number] or {})]:
            self._left.discard(number)
            self._empty(number)


def recorded_processes(job: Job, work_directory: str) -> list[Json]:
    """Processes of earlier attempts on this host that the record may not contain, newest first."""
    known = (job.run or {}).get("attempt")
    least = known if type(known) is int else 0
    entries = [entry for path in _paths(os.path.join(work_directory, FOLDER)) for entry in _read(path)]
    found = [entry for entry in entries if entry.get("job_id") == job.job_id and type(entry.get("attempt")) is int]
    unknown = [entry for entry in found if least < entry["attempt"] < job.attempt]
    return sorted(unknown, key=lambda entry: int(entry["attempt"]), reverse=True)


def _sweep(folder: str) -> None:
    for path in _paths(folder):
        if _is_over(path):
            _unlink(path)


def _is_over(path: str) -> bool:
    """Whether its worker and all its processes have ended. Another host's files cannot be checked."""
    try:
        if time.time() - os.lstat(path).st_mtime > _FORGOTTEN_SECONDS:
            return True
    except OSError:
        return False
    entries = _read(path)
    worker = ProcessId.from_json(entries[0].get("worker")) if entries else None
    if worker is None:
        return False  # it is being created
    if worker.boot_id != boot_id():
        return entries[0].get("host") == os.uname().nodename
    return worker.namespace in (0, pid_namespace()) and not any(map(_has_live_process, entries))


def _has_live_process(entry: Json) -> bool:
    return any(process is not None and is_alive(process) for process in map(ProcessId.from_json, map(entry.get, _WHO)))


def _paths(folder: str) -> list[str]:
    try:
        return [os.path.join(folder, name) for name in os.listdir(folder)]
    except OSError:
        return []


def _read(path: str) -> list[Json]:
    """The valid lines."""
    try:
        _, content = read_regular(path, _LIMIT, os.O_NOFOLLOW)
    except OSError:
        return []
    return [found for line in content.split(b"\n") if isinstance(found := _parsed(line), dict)]


def _parsed(line: bytes) -> object:
    try:
        return safe_json(line) if line.strip() else None
    except ValueError:
        return None


def _make(folder: str) -> None:
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        pass


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
