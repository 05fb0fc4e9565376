"""The worker's side of a run: one `Run` for each agent.

Several threads may share a guardian. A run belongs to one thread, except that any thread may call `stop`.
"""

from __future__ import annotations

import os
import select
import sys
import threading
import time
from collections import deque

from mam.util.encoding import write_all
from mam.util.frozen import Frozen
from mam.work.output_log import LIMIT
from mam.work.process.channel import Channel
from mam.work.process.keeper_pool import READY_SECONDS, GuardianUnresponsive, KeeperPool
from mam.work.process.messages import Ended, Failed, Lost, Started, parse_message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Self

    from mam.work.process.messages import LastMessage, Message

_OVERDUE_SECONDS = 10.0
_TRIES = 3


class Plan(Frozen):
    """What to run."""

    argv: tuple[str, ...]
    env: dict[str, str]
    """The complete environment of the agent."""
    cwd: str
    stdin: bytes | None = None
    """None means /dev/null."""
    tee: bool = False
    """Whether the worker also gets the agent's stdout, through `Run.tee`."""
    tee_errors: bool = False
    """The same for stderr and `Run.tee_errors`."""
    tee_patience: float = 60.0
    """For how many seconds the worker may read nothing before it is cut off; the agent waits that long with it."""
    log_limit: int = LIMIT
    keep_alive_seconds: float | None = None
    """The first `Run.keep_alive`. It is part of the plan because a worker may be stopped right after the start."""


class Run:
    """One run of one agent. Closing it before its final message ends the agent."""

    def __init__(self) -> None:
        self._channel: Channel | None = None
        self._idle: Channel | None = None
        """The channel of a keeper that is idle."""
        self._lock = threading.Lock()
        """Several threads may send orders, and none may write to a descriptor that has just been closed."""
        self._waiting: deque[Message] = deque()
        self._is_ready = False
        self._kept_by: dict[str, Any] = {}
        self._overdue_at: float | None = None
        self.tee: int | None = None
        """The agent's stdout; the caller that asked for it must read it to the end. Fewer bytes than
        `Ended.stdout_bytes` mean that this worker read nothing for too long and was cut off."""
        self.tee_errors: int | None = None
        self.started: Started | None = None
        self.ended: LastMessage | None = None

    def fileno(self) -> int:
        """Readable when there is something new; -1 after the final message. Before polling it, call `wait(0)` until it
        returns None, since several messages may have been read together."""
        return -1 if self._channel is None else self._channel.fileno()

    def is_open(self) -> bool:
        """Whether more messages may come."""
        return self._channel is not None and self._channel.is_open

    def wait(self, timeout: float | None = None) -> Message | None:
        """The next message; None when the time is up, or after the final message.

        If a keeper has not ended its tree long after the request, the worker ends it and returns `Lost`.
        """
        ends = None if timeout is None else time.monotonic() + timeout
        while not self._waiting and self._channel is not None:
            if self._poll(_earlier(ends, self._overdue_at)):
                self._listen()
            elif self._overdue_at is not None and time.monotonic() >= self._overdue_at:
                self._add(self._end_leftovers("the keeper of the run does not answer"))
            elif ends is not None and time.monotonic() >= ends:
                return None
        return self._waiting.popleft() if self._waiting else None

    def messages(self) -> Iterator[Message]:
        """All messages, until the final one."""
        while (message := self.wait()) is not None:
            yield message

    def stop(self, grace: float, why: str) -> None:
        """SIGTERM for the whole tree, SIGKILL after `grace` seconds; it is gone within one more second.

        If the keeper does not do so (an agent can stop it with a signal), `wait` ends the tree.
        """
        overdue = time.monotonic() + max(0.0, grace) + _OVERDUE_SECONDS
        self._overdue_at = overdue if self._overdue_at is None else min(overdue, self._overdue_at)
        self._order({"order": "stop", "grace": grace, "why": why})

    def keep_alive(self, seconds: float | None) -> None:
        """The keeper ends the tree unless this is called again in time. A worker that hangs or is stopped by a signal
        thus loses its agent before it loses its claim. None disables it."""
        self._order({"order": "keep_alive", "seconds": seconds})

    def close(self) -> None:
        self._close_channel()
        if (idle := self.take_idle_keeper()) is not None:
            idle.close()
        for tee in (self.tee, self.tee_errors):
            if tee is not None:
                os.close(tee)
        self.tee = self.tee_errors = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def __del__(self) -> None:
        """A run that its thread dropped, for instance after an error, must not continue unwatched."""
        self.close()

    def begin(self, keeper: Channel, plan: Plan, log: str, given: list[int]) -> None:
        """Gives the run to an idle keeper. If that keeper has died, the channel shows it."""
        self._channel = keeper
        keeper.send(
            {
                "argv": plan.argv,
                "env": plan.env,
                "cwd": os.path.abspath(plan.cwd),
                "stdin": plan.stdin is not None,
                "tee": plan.tee,
                "tee_errors": plan.tee_errors,
                "tee_patience": plan.tee_patience,
                "log": os.path.abspath(log),
                "log_limit": plan.log_limit,
                "keep_alive_seconds": plan.keep_alive_seconds,
            },
            given,
        )

    def wait_accepted(self) -> bool:
        """False if the keeper went away, or never came, before it started anything."""
        ends = time.monotonic() + READY_SECONDS
        while not self._is_ready and self.is_open() and self._poll(ends):
            self._listen()
        return self._is_ready

    def fail(self, reason: str) -> Run:
        """For an error before any keeper has seen the plan."""
        self._add(Failed(reason=reason, is_machine_error=True))
        return self

    def _poll(self, ends: float | None) -> bool:
        while True:
            with self._lock:
                if self._channel is None:
                    return False
                poll = select.poll()
                poll.register(self._channel, select.POLLIN | (select.POLLOUT if self._channel.has_more() else 0))
            found = poll.poll(None if ends is None else max(0.0, ends - time.monotonic()) * 1000)
            self._flush()
            if not found or found[0][1] != select.POLLOUT:
                return bool(found)

    def _flush(self) -> None:
        with self._lock:
            if self._channel is not None:
                self._channel.flush()

    def _order(self, order: dict[str, Any]) -> None:
        with self._lock:
            if self._channel is not None:
                self._channel.send(order)

    def _listen(self) -> None:
        channel = self._channel
        if channel is None:
            return
        for value in channel.receive():
            self._is_ready = True
            if value["kind"] == "ready":
                self._kept_by = {"keeper": value["keeper"]}
            else:
                self._add(parse_message(value))
        if not channel.is_open and self._is_ready and self.ended is None:
            self._add(self._end_leftovers("the keeper of the run was killed"))

    def _add(self, message: Message) -> None:
        self._waiting.append(message)
        if isinstance(message, Started):
            self.started = message
            self._kept_by = message.to_json()
        elif isinstance(message, Ended | Failed | Lost):
            self.ended = message
            if isinstance(message, Ended) and message.is_tree_gone:
                with self._lock:
                    self._channel, self._idle = None, self._channel
            else:
                self._close_channel()

    def take_idle_keeper(self) -> Channel | None:
        """The idle keeper of an ended run, once: for `GuardianClient.return_keeper`, or to be closed. The run closes it
        otherwise."""
        idle, self._idle = self._idle, None
        return idle

    def _close_channel(self) -> None:
        with self._lock:
            if self._channel is not None:
                self._channel.close()
                self._channel = None

    def _end_leftovers(self, reason: str) -> Lost:
        """The guardian does the same when a keeper has died, unless it is gone too."""
        from mam.work.process.takeover import end_earlier

        return Lost(reason=reason, left=end_earlier(self._kept_by))


class GuardianClient:
    """The worker's connection to its guardian process and to the keepers."""

    def __init__(self) -> None:
        self._pool = KeeperPool()

    @property
    def pid(self) -> int | None:
        return self._pool.guardian_pid

    def start(self, plan: Plan, log: str) -> Run:
        """Never raises if the system or the plan lacks something: the run then has one message, `Failed`. An error at
        this point does not depend on the plan."""
        try:
            for _ in range(_TRIES):
                if (run := self._try(plan, log)) is not None:
                    return run
        except OSError as error:
            return Run().fail(f"the run could not be started: {os.strerror(error.errno or 0)}")
        except GuardianUnresponsive:
            pass
        return Run().fail("the guardian process does not answer")

    def return_keeper(self, idle: Channel | None) -> None:
        """Makes a keeper available for another run.

        Only after the end of its last run is written: a worker that takes a job over ends the earlier attempt by the
        identity of its keeper, and would otherwise end the agent of another job.
        """
        if idle is not None:
            self._pool.return_keeper(idle)

    def close(self, timeout: float = 10.0) -> None:
        """It exits after its last run; waits for it that long."""
        self._pool.close(timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _try(self, plan: Plan, log: str) -> Run | None:
        """None if the keeper went away before it started anything; the caller may retry."""
        run, given = Run(), list[int]()
        try:
            if plan.stdin is not None:
                given.append(_readable(plan.stdin))
            if plan.tee:
                run.tee, tee_end = os.pipe()
                given.append(tee_end)
            if plan.tee_errors:
                run.tee_errors, tee_end = os.pipe()
                given.append(tee_end)
            keeper, guardian = self._pool.take()
            run.begin(keeper, plan, log, given)
        except BaseException:
            run.close()
            raise
        finally:
            for descriptor in given:
                os.close(descriptor)
        if run.wait_accepted():
            return run
        if run.is_open():
            self._pool.kill_guardian(guardian)
        self._pool.discard_idle()
        run.close()
        return None


def _earlier(one: float | None, other: float | None) -> float | None:
    return min(one, other) if one is not None and other is not None else one if other is None else other


def _readable(data: bytes) -> int:
    """A descriptor from which the agent can read all of this at any time, without a writer."""
    if sys.platform == "linux":
        writer = os.memfd_create("mam-stdin")
    else:
        import tempfile

        writer, path = tempfile.mkstemp(prefix="mam-")
        os.unlink(path)
    try:
        write_all(writer, data)
        os.lseek(writer, 0, os.SEEK_SET)
    except BaseException:
        os.close(writer)
        raise
    return writer
