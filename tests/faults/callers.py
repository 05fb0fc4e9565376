"""Processes that make the calls of a history, one after another, under a clock that the test sets."""

from __future__ import annotations

import json
import mmap
import os
import random
import socket
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from mam.util.clock import SystemClock
from tests.faults.killing import forked

if TYPE_CHECKING:
    from mam.util.clock import Clock, Moment

FAREWELL, WELL = b"farewell", b"."


class JumpingClock:
    """The system's clock, with a wall clock that the test sets while the processes work."""

    def __init__(self, jump: mmap.mmap) -> None:
        self._jump = jump
        self._real = SystemClock()

    def now(self) -> Moment:
        moment = self._real.now()
        return moment.replace(wall_ms=moment.wall_ms + 1000 * int.from_bytes(self._jump[:4], "little", signed=True))

    def new_id(self) -> str:
        return self._real.new_id()

    def chance(self) -> float:
        return self._real.chance()


def note(notes: int, what: list[Any]) -> None:
    os.write(notes, json.dumps(what).encode() + b"\n")


class CallerProtocol(Protocol):
    def ask(self) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class CallerTask:
    """The calls that one process makes in one history."""

    folder: str
    name: str
    jobs: int
    asks: int

    @property
    def chance(self) -> random.Random:
        return random.Random(self.name)


MakeCaller = Callable[[CallerTask, "Clock", int], CallerProtocol]
"""Gets the clock, and the descriptor of the file for its notes."""


class CallerPool:
    """Processes that take part in one history after another until the test kills them. Starting them for each history
    would cost more than the history."""

    def __init__(self, make_caller: MakeCaller) -> None:
        self._make_caller = make_caller
        self._idle: list[CallerProcess] = []
        self.jump = mmap.mmap(-1, 4)
        self._clock: Clock = JumpingClock(self.jump)

    def start(self, task: CallerTask) -> CallerProcess:
        process = self._idle.pop() if self._idle else self._born()
        process.line.send(json.dumps(vars(task)).encode())
        return process

    def is_done(self, process: CallerProcess) -> bool:
        """Waits for its last call, and keeps the process for the next history. Returns whether it succeeded."""
        went_well = process.line.recv(1) == WELL
        if went_well:
            self._idle.append(process)
        else:
            process.end()
        return went_well

    def close(self) -> None:
        while self._idle:
            self._idle.pop().end()

    def _born(self) -> CallerProcess:
        ours, theirs = socket.socketpair()
        process = forked()
        if process == 0:
            ours.close()
            self._work(theirs)
        theirs.close()
        return CallerProcess(process, ours)

    def _work(self, line: socket.socket) -> None:
        try:
            while (told := line.recv(4096)) not in (FAREWELL, b""):
                task = CallerTask(**json.loads(told))
                notes = os.open(f"{task.folder}/notes-{task.name}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
                caller = self._make_caller(task, self._clock, notes)
                for _ in range(task.asks):
                    caller.ask()
                caller.close()
                os.close(notes)
                line.send(WELL)
        except BaseException:
            traceback.print_exc(file=sys.__stderr__)
            os._exit(1)
        os._exit(0)


class CallerProcess:
    """One process of the pool."""

    def __init__(self, process: int, line: socket.socket) -> None:
        self.process = process
        self.line = line

    def end(self) -> None:
        """At once if it waits for a task. Closing the socket would not be enough: its siblings hold it too."""
        with suppress(OSError):
            self.line.send(FAREWELL)
        self.line.close()
        os.waitpid(self.process, 0)
