"""The worker's doors: for each job that it runs, a socket through which the agent reports on that job and no other.

One thread serves all doors of a worker. A client that sends half a line, reads nothing or connects a thousand times
delays only itself. The thread executes requests one by one, as the store would anyway.
"""

from __future__ import annotations

import os
import socket
import time
from collections import deque
from selectors import EVENT_READ
from threading import Event, Thread, current_thread

from mam.errors import StoreUnavailable
from mam.jobs.rights import MAX_DEPTH, Grants
from mam.work.asking.in_worker import WorkerAsker
from mam.work.asking.policy import Policy
from mam.work.door.child_waits import ChildWaiter
from mam.work.door.connection import ROOM, Connection
from mam.work.door.event_loop import QUEUE, DoorEventLoop
from mam.work.door.handlers import DoorScope
from mam.work.door.socket_dir import SocketDir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from mam.registry import Registry

CLOSING_SECONDS = 2.0
"""How long clients may still read their answers after the doors were closed."""


class Door:
    """One job's socket during one attempt. Public attributes belong to the doors' thread."""

    def __init__(
        self,
        server: DoorServer,
        scope: DoorScope,
        address: str,
        on_activity: Callable[[], None] | None,
        report_start: Callable[[], None],
    ) -> None:
        self.address = address
        self.scope = scope
        self.connections: set[Connection] = set()
        self.queue: deque[Connection] = deque()
        self.waits = 0
        """How many clients wait for the job's children; any thread may read it."""
        self.listens_again_at: float | None = None
        self.listener: socket.socket | None = _listening(address)
        self._server = server
        self._on_activity = on_activity
        self.report_start = report_start

    @property
    def asker(self) -> WorkerAsker:
        return self.scope.asker

    @property
    def environment(self) -> dict[str, str]:
        """The variables that the agent gets."""
        scope = self.scope
        claim = {} if scope.claim_id is None else {"MAM_CLAIM": scope.claim_id}
        return {"MAM_JOB_ID": scope.job_id, "MAM_ATTEMPT": str(scope.attempt), **claim, "MAM_SOCKET": self.address}

    @property
    def room(self) -> int:
        """Bytes of long texts that the door can still take."""
        return ROOM - sum(connection.size for connection in self.connections)

    @property
    def unsent(self) -> int:
        return sum(connection.unsent for connection in self.connections)

    def note_activity(self) -> None:
        try:
            if self._on_activity is not None:
                self._on_activity()
        except Exception:  # the report is stored; a failed callback does not concern the agent
            return

    def close(self) -> None:
        """Refuses new connections; clients that have an answer may still read it. Idempotent."""
        self.asker.close()
        self._server.shut(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


class DoorServer:
    """All doors of one worker, and the thread that serves them.

    `directory` is a private one for the sockets; by default one is found. `logs_dir` is the directory of the audit log,
    for `mam logs`; without it that verb is rejected. `grants` are the rights that the settings give to children.
    `policy` is how permissions are answered without a person.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        directory: str | None = None,
        logs_dir: str | None = None,
        max_depth: int = MAX_DEPTH,
        grants: Grants | None = None,
        policy: Policy | None = None,
    ) -> None:
        self._registry = registry
        self._logs_dir = logs_dir
        self._max_depth = max_depth
        self._grants = grants or Grants()
        self._policy = policy or Policy()
        self._socket_dir = SocketDir(directory)
        self._calls: deque[Callable[[], None]] = deque()
        self._wake_receiver, self._wake_sender = socket.socketpair()
        self._ends: float | None = None
        self._child_waiter = ChildWaiter(registry, lambda job_ids: self._call(lambda: self._loop.wake_waiters(job_ids)))
        self._loop = DoorEventLoop(self._child_waiter)
        self._thread = Thread(target=self._run, name="mam-doors", daemon=True)
        self._thread.start()

    def open(
        self,
        job_id: str,
        attempt: int,
        workdir: str,
        on_activity: Callable[[], None] | None = None,
        report_start: Callable[[], None] = lambda: None,
        claim_id: str | None = None,
    ) -> Door:
        """`workdir` is the agent's directory. Both callbacks run in the doors' thread. `on_activity` is called after
        each report and must not block. `report_start` is called before each request is executed; an error that it
        raises is the answer."""
        asker = WorkerAsker(self._registry, job_id, attempt, claim_id, self._policy)
        scope = DoorScope(
            registry=self._registry, job_id=job_id, attempt=attempt, claim_id=claim_id,
            workdir=os.path.realpath(workdir),
            max_depth=self._max_depth, grants=self._grants, logs_dir=self._logs_dir,
            asker=asker,
        )  # fmt: skip
        door = Door(self, scope, self._socket_dir.new_address(), on_activity, report_start)
        self._call(lambda: self._loop.open(door))
        return door

    def shut(self, door: Door) -> None:
        _unlink(door.address)
        if current_thread() is self._thread:
            self._loop.shut(door)
            return
        done = Event()

        def end() -> None:
            self._loop.shut(door)
            done.set()

        self._call(end)
        if self._thread.is_alive():
            done.wait(CLOSING_SECONDS)

    def close(self) -> None:
        """Closes every door and removes the directory of their sockets. Idempotent."""
        self._child_waiter.close()
        self._call(self._begin_closing)
        self._thread.join(2 * CLOSING_SECONDS)
        self._socket_dir.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    # -- the thread ----------------------------------------------------------------------------------------------

    def _call(self, do: Callable[[], None]) -> None:
        """Runs `do` in the doors' thread."""
        self._calls.append(do)
        try:
            self._wake_sender.send(b"!", socket.MSG_DONTWAIT)
        except OSError:
            pass  # the thread has enough wake-ups pending, or has ended

    def _run(self) -> None:
        loop = self._loop
        self._wake_receiver.setblocking(False)
        loop.selector.register(self._wake_receiver, EVENT_READ, self._drain_wakes)
        while self._ends is None or not (loop.is_empty() or time.monotonic() > self._ends):
            ready = loop.selector.select(self._poll_timeout())
            begun = time.monotonic()
            for key, _ in ready:
                key.data()
            while self._calls:
                self._calls.popleft()()
            loop.expire(time.monotonic() - begun)
        loop.drop_all()
        self._wake_receiver.close()
        self._wake_sender.close()

    def _poll_timeout(self) -> float | None:
        ends = [end for end in (self._loop.next_end(), self._ends) if end is not None]
        return max(0.0, min(ends) - time.monotonic()) if ends else None

    def _begin_closing(self) -> None:
        self._ends = time.monotonic() + CLOSING_SECONDS
        self._loop.shut_all()

    def _drain_wakes(self) -> None:
        try:
            self._wake_receiver.recv(4096)
        except BlockingIOError:
            pass


def _listening(address: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.setblocking(False)
        listener.bind(address)
        os.chmod(address, 0o600)
        listener.listen(QUEUE)
    except OSError as error:
        listener.close()
        raise StoreUnavailable(store=address, problem=f"no socket for the agent: {error.strerror or error}") from None
    return listener


def _unlink(address: str) -> None:
    try:
        os.unlink(address)
    except OSError:
        pass
