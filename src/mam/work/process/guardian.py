"""The guardian: one small process per worker that forks the keepers of its runs and outlives a killed worker.

It has imported what a keeper needs, so that a keeper costs a fork instead of an interpreter start. It pre-forks one
keeper and gives the worker its channel, so that a run does not wait for a fork either. The worker itself tells the
keeper what to run. When a keeper is killed, the guardian inherits and ends its processes. The guardian exits when the
worker's end of the socket is closed and no keeper is left.
"""

from __future__ import annotations

import errno
import gc
import os
import select
import signal
import socket
import sys
import time

from mam.machine.agent_tree import GUARDIAN
from mam.machine.kernel import become_subreaper
from mam.machine.processes import identify
from mam.work.process.channel import Channel
from mam.work.process.keeper import prepare_keeper, serve, warm_up
from mam.work.process.keeper_pool import ERRNO_BYTES, NOW, SPARE
from mam.work.process.signal_pipe import SignalPipe
from mam.work.process.tree import Termination, child_finder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_REQUESTS = 64
_ORPHAN_GRACE = 2.0
_SPARE_SECONDS = 0.005
_AGAIN_SECONDS = 1.0
"""The pause between two tries to pre-fork a keeper, which the system may refuse."""
_WARM_UPS = 8
_IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


class Guardian:
    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._is_open = True
        self._signal_pipe = SignalPipe(signal.SIGCHLD)
        self._keepers: set[int] = set()
        self._owes = self._is_urgent = False
        """Whether the worker should get a keeper, and whether it waits for one."""
        self._due_at = 0.0
        self._life, self._life_end = os.pipe()
        """A pipe that closes with this process; idle keepers then exit."""
        self._childless = True
        self._termination: Termination | None = None

    def serve(self) -> None:
        while self._is_open or not self._childless:
            self._make_keeper()
            self._wait()
            self._reap()
            self._end_orphans()

    def _wait(self) -> None:
        poll = select.poll()
        poll.register(self._signal_pipe, select.POLLIN)
        if self._is_open:
            poll.register(self._requests, select.POLLIN)
        ready = {descriptor for descriptor, _ in poll.poll(self._poll_timeout())}
        self._signal_pipe.read()
        if self._requests.fileno() in ready:
            self._take_request()

    def _poll_timeout(self) -> float | None:
        times = [] if self._termination is None else [self._termination.wakes_at()]
        if self._is_open and self._owes:
            times.append(self._due_at)
        return max(0.0, min(times) - time.monotonic()) * 1000 + 1 if times else None

    def _take_request(self) -> None:
        try:
            asked = self._requests.recv(_MOST_REQUESTS)
        except OSError:
            asked = b""
        if not asked:
            self._is_open = False
        if SPARE in asked:
            self._owes = True
            self._due_at = time.monotonic() + _SPARE_SECONDS
        if NOW in asked:
            self._is_urgent = True

    def _make_keeper(self) -> None:
        """The next keeper is forked when the last one has started its agent, or at once if the worker waits."""
        if not (self._is_open and self._owes and (self._is_urgent or time.monotonic() >= self._due_at)):
            self._is_urgent = self._is_urgent and self._owes
            return
        try:
            ours, theirs = socket.socketpair()
            with ours, theirs:
                is_urgent = self._is_urgent
                self._fork(lambda: _keep_when_asked(theirs, self._life, is_urgent), ours)
                self._answer(0, ours.fileno())
        except OSError as error:
            if self._is_urgent:
                self._answer(error.errno or errno.EAGAIN)
            else:
                self._due_at = time.monotonic() + _AGAIN_SECONDS

    def _answer(self, number: int, *descriptors: int) -> None:
        self._owes = self._is_urgent = False
        try:
            socket.send_fds(self._requests, [number.to_bytes(ERRNO_BYTES, "big")], descriptors)
        except OSError:
            self._is_open = False

    def _fork(self, live: Callable[[], None], worker_end: socket.socket) -> None:
        pid = os.fork()
        if pid:
            self._keepers.add(pid)
            self._childless = False
            return
        try:
            self._signal_pipe.close()
            self._requests.close()
            worker_end.close()
            os.close(self._life_end)
            live()
        finally:
            os._exit(0)  # never back into the guardian's loop; an error shows as the end of the channel

    def _reap(self) -> None:
        try:
            while (ended := os.waitpid(-1, os.WNOHANG | os.WUNTRACED)) != (0, 0):
                self._note_status(*ended)
        except ChildProcessError:
            self._childless = True

    def _note_status(self, pid: int, status: int) -> None:
        """A stopped keeper cannot end its tree, so it is continued."""
        if not os.WIFSTOPPED(status):
            self._keepers.discard(pid)
        elif pid in self._keepers:
            os.kill(pid, signal.SIGCONT)

    def _end_orphans(self) -> None:
        """Children that are not keepers have lost their keeper."""
        if self._keepers.issuperset(child_finder()(os.getpid())):
            self._termination = None
            return
        if self._termination is None:
            self._termination = Termination(_ORPHAN_GRACE, "the keeper was killed")
        self._termination.step(self._reap, self._keepers)


def _keep_when_asked(connection: socket.socket, guardian_life: int, is_urgent: bool) -> None:
    ready = prepare_keeper()
    if not is_urgent:
        warm_up(ready)
    serve(ready, Channel(connection), guardian_life)


def main() -> None:
    """Ignores signals that a terminal or service manager sends to all processes: the guardian ends after its worker."""
    ready = prepare_keeper()
    for _ in range(_WARM_UPS):
        warm_up(ready)
    ready.signal_pipe.close()
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    become_subreaper(GUARDIAN)
    requests = socket.socket(fileno=int(sys.argv[1]))
    requests.set_inheritable(False)
    identify(os.getpid())  # caches the boot id for all keepers
    gc.freeze()  # keeps imported objects in memory that all keepers share
    Guardian(requests).serve()


if __name__ == "__main__":
    main()
