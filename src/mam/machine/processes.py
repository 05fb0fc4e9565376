"""A process is a boot, a pid and a start time: pids are used again, so a pid alone names nobody.

Linux is exact. Elsewhere `ps` is asked, which knows the start to the second: the best that can be had without a
compiled extension.
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
    """Who it was, so that nobody else is ever taken for it."""

    boot_id: str
    pid: int
    start_time: int
    """In the kernel's own unit since the boot; only compared, never computed with."""
    namespace: int = 0
    """Two containers on one machine share the boot and count pids separately. 0 where that is not known."""

    def to_json(self) -> dict[str, Any]:
        return self.as_dict()

    @classmethod
    def from_json(cls, value: object) -> ProcessId | None:
        """None for anything that is not a process: records can be edited by anybody."""
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
    """One line of the system's table of processes."""

    pid: int
    parent: int
    group: int
    session: int
    start_time: int
    dead: bool
    """Ended, and not yet waited for by its parent."""


def identify(pid: int) -> ProcessId | None:
    """None when there is no such process."""
    entry = read_process(pid)
    return None if entry is None else identity_of(entry)


def identity_of(entry: ProcessEntry) -> ProcessId:
    return ProcessId(boot_id=boot_id(), pid=entry.pid, start_time=entry.start_time, namespace=pid_namespace())


def is_alive(process: ProcessId) -> bool:
    """Whether this very process runs here. One that has ended and was not waited for runs no more."""
    entry = read_process(process.pid)
    return entry is not None and not entry.dead and identity_of(entry) == process


def send_signal(process: ProcessId, number: int) -> bool:
    """A signal for this very process and no other; False when it could not be delivered."""
    try:
        if not hasattr(os, "pidfd_open"):
            return is_alive(process) and _kill(process.pid, number)
        descriptor = os.pidfd_open(process.pid)
    except OSError:
        return False
    try:
        # The descriptor was there before the look, so that what was seen is what it stands for.
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
    """What the system says about one pid now."""
    if _EXACT:
        try:
            return _from_stat(_read(f"/proc/{pid}/stat"))
        except OSError:
            return None
    return next(ps("-p", str(pid)), None)


def _read(path: str) -> bytes:
    """One line of the kernel's. Without a file object, which asks three times more than it has to."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, _LINE_LIMIT)
    finally:
        os.close(descriptor)


def list_processes() -> Iterator[ProcessEntry]:
    """Everybody."""
    if not _EXACT:
        yield from ps("-ax")
        return
    for name in os.listdir("/proc"):
        if name.isdigit() and (entry := read_process(int(name))) is not None:
            yield entry


def _from_stat(line: bytes) -> ProcessEntry:
    """The name of the program is in parentheses and may hold anything, parentheses and spaces too."""
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
    """The same from `ps`. A session is not shown everywhere; the group stands for it, since mam starts both at once."""
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
    """The number of the namespace in which this process counts pids; 0 where there is no such thing."""
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
