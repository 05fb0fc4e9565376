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
    """The system's clock, with a wall clock that somebody sets while everybody works."""

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


class Asking(Protocol):
    def ask(self) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Brief:
    """What one process is to do in one history."""

    folder: str
    name: str
    jobs: int
    asks: int

    @property
    def chance(self) -> random.Random:
        return random.Random(self.name)


MakeAsker = Callable[[Brief, "Clock", int], Asking]
"""With this clock, and where to write down what it asks."""


class Crew:
    """Processes that ask in one history after the other, until somebody kills them: most of what a history costs would
    be their birth."""

    def __init__(self, make_asker: MakeAsker) -> None:
        self._make_asker = make_asker
        self._idle: list[Member] = []
        self.jump = mmap.mmap(-1, 4)
        self._clock: Clock = JumpingClock(self.jump)

    def hire(self, brief: Brief) -> Member:
        member = self._idle.pop() if self._idle else self._born()
        member.line.send(json.dumps(vars(brief)).encode())
        return member

    def is_done(self, member: Member) -> bool:
        """Waits until it has asked its last, and keeps it; whether it went well."""
        went_well = member.line.recv(1) == WELL
        if went_well:
            self._idle.append(member)
        else:
            member.end()
        return went_well

    def close(self) -> None:
        while self._idle:
            self._idle.pop().end()

    def _born(self) -> Member:
        ours, theirs = socket.socketpair()
        process = forked()
        if process == 0:
            ours.close()
            self._work(theirs)
        theirs.close()
        return Member(process, ours)

    def _work(self, line: socket.socket) -> None:
        try:
            while (told := line.recv(4096)) not in (FAREWELL, b""):
                brief = Brief(**json.loads(told))
                notes = os.open(f"{brief.folder}/notes-{brief.name}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
                asker = self._make_asker(brief, self._clock, notes)
                for _ in range(brief.asks):
                    asker.ask()
                asker.close()
                os.close(notes)
                line.send(WELL)
        except BaseException:
            traceback.print_exc(file=sys.__stderr__)
            os._exit(1)
        os._exit(0)


class Member:
    """One process of a crew."""

    def __init__(self, process: int, line: socket.socket) -> None:
        self.process = process
        self.line = line

    def end(self) -> None:
        """At once if it waits for more to do. To close the line would not be enough: its siblings have it too."""
        with suppress(OSError):
            self.line.send(FAREWELL)
        self.line.close()
        os.waitpid(self.process, 0)
