"""A pool of processes, or of threads, that work on one store at the same moment.

Members wait at a gate until the last one has opened its store; closing the gate's only writing end lets all of them
go at once. What they find out comes back over pipes. Nothing here sleeps; a racer that stays silent is an error.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import traceback
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.connection import Connection
    from types import TracebackType
    from typing import Self

    from mam.stores.port import Store

    Report = Callable[[Any], None]
    Task = Callable[[Store, Report], Any]
    """What a racer does with its store. Module-level functions and partials of them: they travel to processes."""

    Message = tuple[Literal["ready", "report", "done", "failed"], Any]

SILENCE_SECONDS = 60.0
"""How long a racer may say nothing before the test gives up. No result depends on it."""


class RacerFailed(AssertionError):
    """A racer of the pool raised; the text is its traceback."""


class RacerDied(AssertionError):
    """A racer of the pool was gone before it had finished."""


class RacePool:
    """Members that share one store. `processes` says whether each is a process of its own, else it is a thread."""

    def __init__(self, open_store: Callable[[], Store], *, processes: bool) -> None:
        self._open_store = open_store
        self._processes = processes
        self._racers: list[Racer] = []
        self._gates: list[Connection[Any, Any]] = []

    def __enter__(self) -> Self:
        self._switch_interval = sys.getswitchinterval()
        if not self._processes:
            sys.setswitchinterval(1e-6)  # threads meet in the middle of things, as processes do
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        for racer in self._racers:
            racer.stop()
        for gate in self._gates:
            gate.close()
        sys.setswitchinterval(self._switch_interval)

    def start(self, task: Task) -> Racer:
        """One racer that begins at once; what it reports can be read while it works."""
        return self._start_racer(task, None)

    def race(self, tasks: Sequence[Task]) -> list[Any]:
        """All tasks at the same moment; their results in the order of the tasks."""
        return [racer.result() for racer in self.race_on(tasks)]

    def race_on(self, tasks: Sequence[Task]) -> list[Racer]:
        """As `race`, but gives the racers back while they run."""
        gate, opener = _context().Pipe(duplex=False)
        self._gates.append(gate)
        racers = [self._start_racer(task, gate) for task in tasks]
        for racer in racers:
            racer.ready()
        opener.close()
        return racers

    def _start_racer(self, task: Task, gate: Connection[Any, Any] | None) -> Racer:
        racer = Racer(self._open_store, task, gate, processes=self._processes)
        self._racers.append(racer)
        return racer


class Racer:
    """One process or thread at work."""

    def __init__(
        self, open_store: Callable[[], Store], task: Task, gate: Connection[Any, Any] | None, *, processes: bool
    ) -> None:
        self._inbox, outbox = _context().Pipe(duplex=False)
        self._is_process = processes
        self._reports: list[Any] = []
        work = (open_store, task, outbox, gate, processes)
        if processes:
            self._process = _context().Process(target=_serve, args=work, daemon=True)
            self._process.start()
            outbox.close()
        else:
            self._thread = threading.Thread(target=_serve, args=work, daemon=True)
            self._thread.start()

    def ready(self) -> None:
        """Returns when the racer waits at the gate."""
        self._expect("ready")

    def report(self) -> Any:
        """The next thing the racer reports."""
        if self._reports:
            return self._reports.pop(0)
        return self._expect("report")

    def result(self) -> Any:
        """What the task returned; waits for it."""
        return self._expect("done")

    def check(self) -> None:
        """Raises if the racer has failed, or has ended already."""
        while self._inbox.poll():
            kind, value = self._receive()
            if kind == "failed":
                raise RacerFailed(value)
            if kind == "done":
                raise RacerDied("it had finished too early")
            if kind == "report":
                self._reports.append(value)

    def freeze(self) -> None:
        """SIGSTOP: from here on it reports nothing more, whatever the kernel still does for it. Only for processes."""
        assert self._process.pid is not None
        os.kill(self._process.pid, signal.SIGSTOP)

    def kill(self) -> list[Any]:
        """SIGKILL, and everything that was reported and not yet read. Only for processes."""
        self._process.kill()
        self._process.join()
        return list(self._rest())

    def stop(self) -> None:
        """End it if it still runs; a thread is waited for instead."""
        if self._is_process:
            self._process.kill()
            self._process.join()
        else:
            self._thread.join(SILENCE_SECONDS)
        self._inbox.close()

    def _rest(self) -> Iterator[Any]:
        yield from self._reports
        while True:
            try:
                kind, value = self._inbox.recv()
            except EOFError:
                return
            if kind == "failed":
                raise RacerFailed(value)
            if kind == "report":
                yield value

    def _expect(self, wanted: str) -> Any:
        while True:
            kind, value = self._receive()
            if kind == "failed":
                raise RacerFailed(value)
            if kind == wanted:
                return value
            if kind == "done":
                raise RacerDied(f"it had finished when a {wanted} was awaited")
            if kind == "report":
                self._reports.append(value)

    def _receive(self) -> Message:
        if not self._inbox.poll(SILENCE_SECONDS):
            raise RacerDied(f"it said nothing for {SILENCE_SECONDS:g} s")
        try:
            message: Message = self._inbox.recv()
        except EOFError:
            raise RacerDied("its pipe closed before it had finished") from None
        return message


def _serve(
    open_store: Callable[[], Store],
    task: Task,
    outbox: Connection[Any, Any],
    gate: Connection[Any, Any] | None,
    own_store: bool,
) -> None:
    """A racer's whole life. A thread works on a store that others use too, and leaves it open."""
    try:
        store = open_store()
        outbox.send(("ready", None))
        if gate is not None:
            gate.poll(None)  # readable for all when its writing end closes
        result = task(store, lambda value: outbox.send(("report", value)))
        if own_store:
            store.close()
        outbox.send(("done", result))
    except BaseException:  # whatever it was, the test must hear of it
        outbox.send(("failed", traceback.format_exc()))
    finally:
        outbox.close()


def _context() -> Any:
    """Processes are forked from a server that has one thread, since forking the test's own process may deadlock."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["mam.testing.conformance"])
    return context
