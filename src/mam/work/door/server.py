"""The worker's doors: for each job it runs, a socket by which the agent reports on that job and on nothing else.

One thread serves all doors of a worker. Whoever sends half a line, reads nothing or comes a thousand times waits for
itself. Requests are carried out in that thread one by one, as the store would do them anyway.
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
from mam.work.door.child_waits import Ear
from mam.work.door.connection import ROOM, Visit
from mam.work.door.event_loop import QUEUE, Reception
from mam.work.door.handlers import Bound
from mam.work.door.socket_dir import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from mam.registry import Registry

CLOSING_SECONDS = 2.0
"""How long answers may still be taken after the doors were closed."""


class Door:
    """One job's socket, while one attempt holds it. What is not underlined is the doors' thread's business."""

    def __init__(
        self,
        doors: Doors,
        bound: Bound,
        address: str,
        on_sign: Callable[[], None] | None,
        announce: Callable[[], None],
    ) -> None:
        self.address = address
        self.bound = bound
        self.visits: set[Visit] = set()
        self.turns: deque[Visit] = deque()
        self.waits = 0
        """How many of the visitors wait for the job's children; any thread may look."""
        self.listens_again_at: float | None = None
        self.listener: socket.socket | None = _listening(address)
        self._doors = doors
        self._on_sign = on_sign
        self.announce = announce

    @property
    def environment(self) -> dict[str, str]:
        """What the agent is told."""
        bound = self.bound
        claim = {} if bound.claim_id is None else {"MAM_CLAIM": bound.claim_id}
        return {"MAM_JOB_ID": bound.job_id, "MAM_ATTEMPT": str(bound.attempt), **claim, "MAM_SOCKET": self.address}

    @property
    def room(self) -> int:
        """Bytes of long texts for which there is still room."""
        return ROOM - sum(visit.size for visit in self.visits)

    @property
    def owed(self) -> int:
        return sum(visit.owed for visit in self.visits)

    def sign(self) -> None:
        try:
            if self._on_sign is not None:
                self._on_sign()
        except Exception:  # what was reported is stored; a listener's trouble is not the agent's
            return

    def close(self) -> None:
        """Nobody can come in any more; who has been answered may still read. More than once is the same as once."""
        self._doors.shut(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


class Doors:
    """All doors of one worker, and the thread that serves them.

    `directory` is a private one for their sockets; without it one is found. `logs_dir` is where the audit log is, for
    `mam logs`; without it that verb is refused. `grants` is what the settings give to children.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        directory: str | None = None,
        logs_dir: str | None = None,
        max_depth: int = MAX_DEPTH,
        grants: Grants | None = None,
    ) -> None:
        self._registry = registry
        self._logs_dir = logs_dir
        self._max_depth = max_depth
        self._grants = grants or Grants()
        self._place = Place(directory)
        self._calls: deque[Callable[[], None]] = deque()
        self._bell, self._ringer = socket.socketpair()
        self._ends: float | None = None
        self._ear = Ear(registry, lambda job_ids: self._call(lambda: self._reception.hear(job_ids)))
        self._reception = Reception(self._ear)
        self._thread = Thread(target=self._run, name="mam-doors", daemon=True)
        self._thread.start()

    def open(
        self,
        job_id: str,
        attempt: int,
        place: str,
        on_sign: Callable[[], None] | None = None,
        announce: Callable[[], None] = lambda: None,
        claim_id: str | None = None,
    ) -> Door:
        """`place` is where the agent runs. Both calls are made in the doors' thread: `on_sign` whenever the agent has
        reported something, and must not wait; `announce` before anything is carried out, and what it raises is the
        answer."""
        bound = Bound(
            registry=self._registry, job_id=job_id, attempt=attempt, claim_id=claim_id, place=os.path.realpath(place),
            max_depth=self._max_depth, grants=self._grants, logs_dir=self._logs_dir,
        )  # fmt: skip
        door = Door(self, bound, self._place.new_address(), on_sign, announce)
        self._call(lambda: self._reception.open(door))
        return door

    def shut(self, door: Door) -> None:
        _unlink(door.address)
        if current_thread() is self._thread:
            self._reception.shut(door)
            return
        done = Event()

        def end() -> None:
            self._reception.shut(door)
            done.set()

        self._call(end)
        if self._thread.is_alive():
            done.wait(CLOSING_SECONDS)

    def close(self) -> None:
        """Every door is shut, and the directory of their sockets is gone. More than once is the same as once."""
        self._ear.close()
        self._call(self._begin_closing)
        self._thread.join(2 * CLOSING_SECONDS)
        self._place.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    # -- the thread ----------------------------------------------------------------------------------------------

    def _call(self, do: Callable[[], None]) -> None:
        """Has it done by the doors' thread."""
        self._calls.append(do)
        try:
            self._ringer.send(b"!", socket.MSG_DONTWAIT)
        except OSError:
            pass  # it has been rung often enough, or for ever

    def _run(self) -> None:
        reception = self._reception
        self._bell.setblocking(False)
        reception.selector.register(self._bell, EVENT_READ, self._answer_bell)
        while self._ends is None or not (reception.is_empty() or time.monotonic() > self._ends):
            ready = reception.selector.select(self._patience())
            begun = time.monotonic()
            for key, _ in ready:
                key.data()
            while self._calls:
                self._calls.popleft()()
            reception.let_time_pass(time.monotonic() - begun)
        reception.drop_all()
        self._bell.close()
        self._ringer.close()

    def _patience(self) -> float | None:
        ends = [end for end in (self._reception.next_end(), self._ends) if end is not None]
        return max(0.0, min(ends) - time.monotonic()) if ends else None

    def _begin_closing(self) -> None:
        self._ends = time.monotonic() + CLOSING_SECONDS
        self._reception.shut_all()

    def _answer_bell(self) -> None:
        try:
            self._bell.recv(4096)
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
