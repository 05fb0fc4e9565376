"""Agents that report their pids through a named pipe, so that a test can wait for them."""

from __future__ import annotations

import gc
import os
import select
import sys
import time
from typing import TYPE_CHECKING

from mam.machine.processes import ProcessId, identify, is_alive
from mam.work.output_log import read
from mam.work.process.messages import Ended, Failed
from mam.work.process.runner import Plan

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from mam.work.process.runner import Run

PATIENCE = 60.0
"""Only so that a broken test ends."""

ENV = {"PATH": "/usr/bin:/bin"}


class PidPipe:
    """A named pipe into which processes write their pids, one a line."""

    def __init__(self, directory: Path) -> None:
        self.path = str(directory / "pids")
        os.mkfifo(self.path)
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._text = b""

    def close(self) -> None:
        os.close(self._descriptor)

    def read(self, count: int) -> list[int]:
        """The next so many pids; their processes may have ended."""
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        while self._text.count(b"\n") < count:
            assert poll.poll(PATIENCE * 1000), f"only {self._text!r} of {count} processes reported"
            self._text += os.read(self._descriptor, 1 << 16)
        lines = self._text.split(b"\n")
        self._text = b"\n".join(lines[count:])
        return [int(line) for line in lines[:count]]

    def processes(self, count: int) -> list[ProcessId]:
        """The next so many processes, as they are while they live."""
        found = [identify(pid) for pid in self.read(count)]
        assert None not in found, "a process ended before the test could look at it"
        return [process for process in found if process is not None]


def shell(script: str, *arguments: str, **more: object) -> Plan:
    return Plan(argv=("/bin/sh", "-c", script, "sh", *arguments), env=ENV, cwd="/", **more)  # type: ignore[arg-type]


def python(script: str, *arguments: str, **more: object) -> Plan:
    """Without site-packages, which would only slow the start."""
    argv = (sys.executable, "-I", "-S", "-c", script, *arguments)
    return Plan(argv=argv, env=ENV, cwd="/", **more)  # type: ignore[arg-type]


def finish(run: Run) -> Ended:
    """The last message, which must say that the run has ended."""
    last = None
    while (message := run.wait(PATIENCE)) is not None:
        last = message
    assert isinstance(last, Ended), last
    return last


def text_in(directory: str) -> str:
    """What an output log holds."""
    return b"".join(read(directory)).decode()


def failure(run: Run) -> str:
    """Why it did not start, which is all that such a run says."""
    first, second = run.wait(PATIENCE), run.wait(0)
    assert isinstance(first, Failed), first
    assert second is None
    assert run.ended == first
    assert "\n" not in first.reason
    return first.reason


def await_gone(processes: Iterable[ProcessId]) -> None:
    """By a descriptor of the process where there is one, which turns readable at the end."""
    ends = time.monotonic() + PATIENCE
    for process in processes:
        while is_alive(process):
            assert time.monotonic() < ends, f"process {process.pid} is still there"
            try:
                descriptor = os.pidfd_open(process.pid)
            except OSError:
                continue
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            poll.poll(1000)
            os.close(descriptor)


def those_with(argument: str) -> list[int]:
    """Every process of the system that was started with this argument, or forked from one that was."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                if os.fsencode(argument) in file.read().split(b"\0"):
                    found.append(int(name))
        except OSError:
            continue
    return found


def descriptors(pid: int | None = None) -> int:
    """How many a process has open; of this one, without what earlier tests left to be collected at any time."""
    if pid is None:
        gc.collect()
    return len(os.listdir(f"/proc/{pid or 'self'}/fd"))
