"""One guardian for each worker: a small process that forks a keeper for every run, and outlives a killed worker.

It has imported what a keeper needs, so that a run costs a fork and not the start of an interpreter, and one keeper is
forked ahead, so that it does not even cost that. The next one is forked a moment after a request and not at once, since
whoever asked wants the processor for its agent. A request is one byte with descriptors; what is to be run goes over the
keeper's own wire. When a keeper is killed, what it kept falls to the guardian and is ended. The guardian ends when the
worker's end of the socket is closed and nobody is left to keep.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
import time

from mam.machine.kernel import inherit_orphans
from mam.machine.processes import identify
from mam.work.ending import Ending
from mam.work.keeper import get_ready, keep, rehearse
from mam.work.trees import finder
from mam.work.wakes import Wakes
from mam.work.wire import Wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_DESCRIPTORS = 4
_ORPHAN_GRACE = 2.0
_SPARE_SECONDS = 0.005
_AGAIN_SECONDS = 1.0
"""Between two tries to fork a spare, which the system may refuse."""
_REHEARSALS = 8
_IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


class Guardian:
    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._is_open = True
        self._wakes = Wakes(signal.SIGCHLD)
        self._keepers: set[int] = set()
        self._spare: socket.socket | None = None
        """Leads to a keeper that has nothing to keep yet."""
        self._spare_at = 0.0
        self._childless = True
        self._ending: Ending | None = None

    def serve(self) -> None:
        while self._is_open or not self._childless:
            self._make_spare()
            self._wait()
            self._reap()
            self._look_after_orphans()

    def _wait(self) -> None:
        poll = select.poll()
        poll.register(self._wakes, select.POLLIN)
        if self._is_open:
            poll.register(self._requests, select.POLLIN)
        ready = {descriptor for descriptor, _ in poll.poll(self._patience())}
        self._wakes.heard()
        if self._requests.fileno() in ready:
            self._take_request()

    def _patience(self) -> float | None:
        times = [] if self._ending is None else [self._ending.wakes_at()]
        if self._is_open and self._spare is None:
            times.append(self._spare_at)
        return max(0.0, min(times) - time.monotonic()) * 1000 + 1 if times else None

    def _take_request(self) -> None:
        try:
            request, descriptors, _, _ = socket.recv_fds(self._requests, 1, _MOST_DESCRIPTORS)
        except OSError:
            request, descriptors = b"", []
        if not request:
            self._close()
            return
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        try:
            if not self._give_to_spare(descriptors):
                self._fork(lambda: keep(get_ready(), descriptors))
        except OSError as error:
            reason = f"no keeper for the run: {os.strerror(error.errno or 0)}"
            Wire(descriptors[0]).send({"kind": "failed", "reason": reason})
        for descriptor in descriptors:
            os.close(descriptor)

    def _close(self) -> None:
        """A spare keeper sees that nobody will ask for it any more."""
        self._is_open = False
        if self._spare is not None:
            self._spare.close()

    def _make_spare(self) -> None:
        """Without one, for want of processes, the next request tries again and says what is wrong."""
        if self._spare is not None or not self._is_open or time.monotonic() < self._spare_at:
            return
        self._spare_at = time.monotonic() + _AGAIN_SECONDS
        try:
            ours, theirs = socket.socketpair()
        except OSError:
            return
        with theirs:
            try:
                self._fork(lambda: _keep_when_asked(theirs, ours))
                self._spare = ours
            except OSError:
                ours.close()

    def _give_to_spare(self, descriptors: list[int]) -> bool:
        spare, self._spare = self._spare, None
        self._spare_at = time.monotonic() + _SPARE_SECONDS
        if spare is None:
            return False
        with spare:
            try:
                socket.send_fds(spare, [b"k"], descriptors)
            except OSError:
                return False  # it was killed
        return True

    def _fork(self, live: Callable[[], None]) -> None:
        pid = os.fork()
        if pid:
            self._keepers.add(pid)
            self._childless = False
            return
        try:
            self._wakes.close()
            self._requests.close()
            live()
        finally:
            os._exit(0)  # never back into the guardian's loop; whatever went wrong shows as the end of the wire

    def _reap(self) -> None:
        try:
            while (ended := os.waitpid(-1, os.WNOHANG | os.WUNTRACED)) != (0, 0):
                self._take_note(*ended)
        except ChildProcessError:
            self._childless = True

    def _take_note(self, pid: int, status: int) -> None:
        """A keeper that somebody has stopped cannot end its tree; it is made to go on."""
        if not os.WIFSTOPPED(status):
            self._keepers.discard(pid)
        elif pid in self._keepers:
            os.kill(pid, signal.SIGCONT)

    def _look_after_orphans(self) -> None:
        """Children that are not keepers have lost theirs."""
        if self._keepers.issuperset(finder()(os.getpid())):
            self._ending = None
            return
        if self._ending is None:
            self._ending = Ending(_ORPHAN_GRACE, "the keeper was killed")
        self._ending.step(self._reap, self._keepers)


def _keep_when_asked(asked: socket.socket, guardian_end: socket.socket) -> None:
    guardian_end.close()
    ready = get_ready()
    rehearse(ready)
    _, descriptors, _, _ = socket.recv_fds(asked, 1, _MOST_DESCRIPTORS)
    asked.close()
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    if descriptors:
        keep(ready, descriptors)


def main() -> None:
    """Ignores what a terminal or a service manager sends to everybody: its work is over when the worker's is."""
    ready = get_ready()
    for _ in range(_REHEARSALS):
        rehearse(ready)
    ready.wakes.close()
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    inherit_orphans("mam-guardian")
    requests = socket.socket(fileno=int(sys.argv[1]))
    requests.set_inheritable(False)
    identify(os.getpid())  # so that no keeper has to find out which boot this is
    gc.freeze()  # what is imported by now is shared with every keeper, and stays so
    Guardian(requests).serve()


if __name__ == "__main__":
    main()
