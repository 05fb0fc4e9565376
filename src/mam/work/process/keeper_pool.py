"""The worker's supply of keepers: idle ones, and new ones from the guardian process, which is started when the first is
needed, and again if it died.

The worker holds the channel of one pre-forked keeper, so that a run begins with one message. The guardian forks the
next one meanwhile.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import sys
import threading

from mam.work.process.channel import Channel

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess

READY_SECONDS = 30.0
SPARE, NOW = b"s", b"n"
"""Requests to the guardian: one keeper soon; the one that is owed, at once."""
ERRNO_BYTES = 4
"""The guardian's answer: 0 with a keeper's channel, or the errno of the failed fork."""
_DEAD_SECONDS = 5.0
_MOST_IDLE = 8
_TRIES = 3
_KEPT_VARIABLES = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONHOME", "TMPDIR")
_CLOSED_ON_EXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)


class GuardianUnresponsive(Exception):
    """The guardian process does not answer."""


class KeeperPool:
    """Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._requests: socket.socket | None = None
        self._is_owed = False
        self._idle: list[Channel] = []

    @property
    def guardian_pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def take(self) -> tuple[Channel, int]:
        """A keeper's channel, and the pid of its guardian. Raises OSError if the system lacks something, or
        GuardianUnresponsive."""
        with self._lock:
            for _ in range(_TRIES):
                process, requests = self._guardian()
                if (idle := self._take_idle()) is not None:
                    return idle, process.pid
                try:
                    keeper = self._receive(requests)
                except (ConnectionError, EOFError):
                    self._forget(_DEAD_SECONDS)
                    continue
                except TimeoutError:
                    process.kill()
                    self._forget(_DEAD_SECONDS)
                    continue
                try:
                    requests.send(SPARE)
                    self._is_owed = True
                except ConnectionError:
                    # Without a guardian no process would end what this keeper leaves if it is killed.
                    keeper.close()
                    self._forget(_DEAD_SECONDS)
                    continue
                return Channel(keeper), process.pid
        raise GuardianUnresponsive

    def return_keeper(self, keeper: Channel) -> None:
        """Takes a keeper whose run has ended. It exits on its own when its guardian dies."""
        with self._lock:
            if self._requests is not None and len(self._idle) < _MOST_IDLE:
                self._idle.append(keeper)
            else:
                keeper.close()

    def _take_idle(self) -> Channel | None:
        """The most recently used one, whose memory is in the caches."""
        while self._idle:
            keeper = self._idle.pop()
            if not (keeper.has_more() or _has_come(keeper)):
                return keeper
            keeper.close()  # dead, or out of step
        return None

    def discard_idle(self) -> None:
        """An idle keeper was gone when it got a run, probably because the guardian has died. The others will be gone
        too, so that trying them one by one would use up the tries."""
        with self._lock:
            self._close_idle()

    def kill_guardian(self, pid: int) -> None:
        """Kills a guardian whose keepers do not answer. Keepers that do answer continue without it."""
        with self._lock:
            if self._process is not None and self._process.pid == pid:
                self._process.kill()
                self._forget(_DEAD_SECONDS)

    def close(self, timeout: float) -> None:
        """The guardian exits after its last run; waits for it that long."""
        with self._lock:
            self._forget(timeout)

    def _guardian(self) -> tuple[subprocess.Popen[bytes], socket.socket]:
        if self._process is None or self._requests is None:
            self._process, self._requests = _start_guardian()
        return self._process, self._requests

    def _receive(self, requests: socket.socket) -> socket.socket:
        """The pre-forked keeper, or one that is forked now."""
        if not (self._is_owed and _has_come(requests)):
            requests.send(NOW if self._is_owed else SPARE + NOW)
            self._is_owed = True
        requests.settimeout(READY_SECONDS)
        said, descriptors, _, _ = socket.recv_fds(requests, ERRNO_BYTES, 1, _CLOSED_ON_EXEC)
        if not said:
            raise EOFError
        self._is_owed = False
        if not descriptors:
            # A keeper that could not be received for lack of descriptors exits on its own.
            raise OSError(int.from_bytes(said, "big") or errno.EMFILE, "no keeper")
        keeper = socket.socket(fileno=descriptors[0])
        keeper.set_inheritable(False)
        return keeper

    def _forget(self, timeout: float) -> None:
        """A keeper whose channel waits in the socket sees it close."""
        requests, self._requests = self._requests, None
        process, self._process = self._process, None
        self._is_owed = False
        self._close_idle()
        if requests is not None:
            requests.close()
        if process is not None:
            _wait_for(process, timeout)

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()


def _has_come(source: socket.socket | Channel) -> bool:
    poll = select.poll()
    poll.register(source, select.POLLIN)
    return bool(poll.poll(0))


def _start_guardian() -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Starts it in a session of its own, out of reach of the terminal. It holds no file, directory or secret of the
    worker.

    It finds mam by PYTHONPATH alone (-S), never in the working directory (-P).
    """
    import subprocess

    import mam

    env = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    env["PYTHONPATH"] = os.path.dirname(os.path.dirname(os.path.abspath(mam.__file__)))
    env["PYTHONUTF8"] = "1"
    ours, theirs = socket.socketpair()
    try:
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-P", "-S", "-m", "mam.work.process.guardian", str(theirs.fileno())],
                env=env,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
    except BaseException:
        ours.close()
        raise
    return process, ours


def _wait_for(process: subprocess.Popen[bytes], timeout: float) -> None:
    """Waits in the background for a guardian that still has runs, so that it does not stay a zombie."""
    import subprocess

    try:
        process.wait(timeout)
    except subprocess.TimeoutExpired:
        threading.Thread(target=process.wait, name="mam-guardian", daemon=True).start()
