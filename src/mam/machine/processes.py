"""Identifies processes by boot, pid and start time, because the system reuses pids.

On Linux this is exact. Elsewhere mam calls `ps`, which reports the start time in seconds.
"""

from __future__ import annotations

import os
import signal
import sys

from mam.util.clock import boot_id
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_EXACT = sys.platform == "linux"
_LINE_LIMIT = 4096


class ProcessId(Frozen):
    """Identifies one process, even after its pid has been reused."""

    boot_id: str
    pid: int
    start_time: int
    """In the kernel's unit since boot; only compared."""
    namespace: int = 0
    """The pid namespace: containers on one machine share the boot id but not the pids. 0 if unknown."""

    def to_json(self) -> dict[str, Any]:
        return self.as_dict()

    @classmethod
    def from_json(cls, value: object) -> ProcessId | None:
        """None for anything else: a record may have been edited by hand."""
        if not isinstance(value, dict):
            return None
        boot = value.get("boot_id")
        numbers: list[Any] = [value.get("pid"), value.get("start_time"), value.get("namespace", 0)]
        if not (isinstance(boot, str) and boot) or any(type(number) is not int or number < 0 for number in numbers):
            return None
        pid, start_time, namespace = numbers
        if not 1 < pid < 2**31:
            return None
        return cls(boot_id=boot, pid=pid, start_time=start_time, namespace=namespace)


class ProcessEntry(Frozen):
    """One row of the system's process table."""

    pid: int
    parent: int
    group: int
    session: int
    start_time: int
    dead: bool
    """Ended, but not yet reaped by its parent."""


def identify(pid: int) -> ProcessId | None:
    """None when there is no such process."""
    entry = read_process(pid)
    return None if entry is None else identity_of(entry)


def identity_of(entry: ProcessEntry) -> ProcessId:
    return ProcessId(boot_id=boot_id(), pid=entry.pid, start_time=entry.start_time, namespace=pid_namespace())


def is_alive(process: ProcessId) -> bool:
    """Whether exactly this process is running; a zombie is not."""
    entry = read_process(process.pid)
    return entry is not None and not entry.dead and identity_of(entry) == process


def send_signal(process: ProcessId, number: int) -> bool:
    """Sends a signal to exactly this process; False when it could not be delivered."""
    try:
        if not hasattr(os, "pidfd_open"):
            return is_alive(process) and _kill(process.pid, number)
        descriptor = os.pidfd_open(process.pid)
    except OSError:
        return False
    try:
        # The descriptor was opened first, so it refers to the process that is identified now.
        if identify(process.pid) != process:
            return False
        signal.pidfd_send_signal(descriptor, number)
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _kill(pid: int, number: int) -> bool:
    os.kill(pid, number)
    return True


def read_process(pid: int) -> ProcessEntry | None:
    """The current entry of one pid, or None."""
    if _EXACT:
        try:
            return _from_stat(_read(f"/proc/{pid}/stat"))
        except OSError:
            return None
    return next(ps("-p", str(pid)), None)


def _read(path: str) -> bytes:
    """Reads one line from /proc, with fewer system calls than a file object."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, _LINE_LIMIT)
    finally:
        os.close(descriptor)


def list_processes() -> Iterator[ProcessEntry]:
    """All processes."""
    if not _EXACT:
        yield from ps("-ax")
        return
    for name in os.listdir("/proc"):
        if name.isdigit() and (entry := read_process(int(name))) is not None:
            yield entry


def _from_stat(line: bytes) -> ProcessEntry:
    """The program name is in parentheses and may itself contain parentheses and spaces."""
    fields = line[line.rindex(b")") + 2 :].split()
    return ProcessEntry(
        pid=int(line[: line.index(b" ")]),
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        start_time=int(fields[19]),
        dead=fields[0] in (b"Z", b"X"),
    )


def ps(*which: str) -> Iterator[ProcessEntry]:
    """Entries from `ps`. Not every `ps` shows sessions, so the group is used: mam starts both together."""
    import subprocess
    import time

    columns = ["-o", "pid=", "-o", "ppid=", "-o", "pgid=", "-o", "state=", "-o", "lstart="]
    asked = subprocess.run(
        ["/bin/ps", *which, *columns], capture_output=True, text=True, env={"LC_ALL": "C"}, stdin=subprocess.DEVNULL
    )
    for line in asked.stdout.splitlines():
        pid, parent, group, state, *started = line.split()
        second = int(time.mktime(time.strptime(" ".join(started), "%a %b %d %H:%M:%S %Y")))
        yield ProcessEntry(
            pid=int(pid),
            parent=int(parent),
            group=int(group),
            session=int(group),
            start_time=second,
            dead=state.startswith("Z"),
        )


_namespace: int | None = None


def pid_namespace() -> int:
    """The pid namespace of this process; 0 where there is none."""
    global _namespace
    if _namespace is None:
        try:
            _namespace = os.stat("/proc/self/ns/pid").st_ino
        except OSError:
            _namespace = 0
    return _namespace


def not_ignored(*numbers: signal.Signals) -> list[signal.Signals]:
    """The signals that this process was not started to ignore: nohup makes it ignore SIGHUP."""
    return [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
