"""The keeper of one run: it starts the agent, copies its output, watches it, and ends its whole process tree.

It is forked from the guardian and has one thread and one loop. Orphans of the agent's tree become its children, so the
run is over exactly when the kernel reports that the keeper has no children. When the worker is gone, which shows as the
end of the channel, the keeper ends the tree too: another worker will claim the job, and two agents must not work on it.

An idle keeper may get another run of the same worker: see `GuardianClient.return_keeper`.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import time
from itertools import dropwhile

from mam.machine.agent_tree import KEEPER
from mam.machine.kernel import become_subreaper
from mam.machine.processes import identify
from mam.util.encoding import to_bytes
from mam.util.frozen import Frozen
from mam.work.output_log import OutputLog
from mam.work.process.channel import Channel
from mam.work.process.messages import LEFT_BEHIND
from mam.work.process.pumps import Pump, Tee
from mam.work.process.signal_pipe import SignalPipe
from mam.work.process.spawn import CannotStart, spawn
from mam.work.process.tree import Termination, end_group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_REPORT_SECONDS = 1.0
_WORKER_GONE_GRACE = 3.0
_LINGER_SECONDS = 0.2  # the remaining processes may be about to end: a `tee` that writes its last line
_LEFTOVER_GRACE = 1.0
_GIVE_UP_SECONDS = 5.0
_END_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class PreparedKeeper(Frozen):
    """A keeper that is ready and has no run yet."""

    signal_pipe: SignalPipe
    identity: dict[str, Any] | None
    """The keeper's own process id."""


def prepare_keeper() -> PreparedKeeper:
    become_subreaper(KEEPER)
    return PreparedKeeper(signal_pipe=SignalPipe(signal.SIGCHLD, *_END_SIGNALS), identity=_identity_of(os.getpid()))


def warm_up(ready: PreparedKeeper) -> None:
    """Runs an empty plan. Python runs code faster the second time, and memory shared by a fork is copied at the first
    write; without this, the first run would wait for both."""
    theirs, mine = socket.socketpair()
    with theirs, mine:
        plan = {
            "argv": [""],
            "env": {},
            "cwd": os.sep,
            "stdin": False,
            "tee": False,
            "tee_errors": False,
            "keep_alive_seconds": None,
        }
        more = {"log": os.path.join(os.devnull, "none"), "log_limit": 0, "keep_alive_seconds": None}
        theirs.send(to_bytes(plan | more) + b"\n")
        channel = Channel(mine)
        _keep(ready, channel, channel.receive())


def serve(ready: PreparedKeeper, channel: Channel, guardian_life: int) -> None:
    """Serves one run after the other while the worker has some. An idle keeper exits with its guardian: without one, no
    process would end what a killed keeper leaves, so the worker asks for another."""
    poll = select.poll()
    for source in (channel, ready.signal_pipe, guardian_life):
        poll.register(source, select.POLLIN)
    while channel.is_open:
        come = {descriptor for descriptor, _ in poll.poll()}
        if guardian_life in come or set(_END_SIGNALS).intersection(ready.signal_pipe.read()):
            return
        # An order without a plan was meant for the previous run and came too late.
        if not _keep(ready, channel, list(dropwhile(lambda order: "argv" not in order, channel.receive()))):
            return


def _keep(ready: PreparedKeeper, channel: Channel, orders: list[dict[str, Any]]) -> bool:
    """Serves one run, if the orders begin with a plan. The descriptors that came with it are stdin and the tees.

    Returns False if a signal told the keeper to exit.
    """
    if not orders:
        return True
    plan, *orders = orders
    # Before the agent starts, so that the worker can find it whatever it does to its keeper.
    channel.send({"kind": "ready", "keeper": ready.identity})
    given = channel.descriptors()
    stdin = given.pop(0) if plan["stdin"] else os.open(os.devnull, os.O_RDONLY)
    tee = Tee(given.pop(0), plan["tee_patience"]) if plan["tee"] else None
    tee_errors = Tee(given.pop(0), plan["tee_patience"]) if plan["tee_errors"] else None
    keeper = Keeper(channel, ready, OutputLog(plan["log"], plan["log_limit"]), tee, tee_errors)
    if channel.is_open and keeper.start(plan, stdin):
        for order in orders:
            keeper.handle_order(order)
        keeper.watch()
    return keeper.flush_last_message()


def _identity_of(pid: int) -> dict[str, Any] | None:
    process = identify(pid)
    return None if process is None else process.to_json()


class Keeper:
    def __init__(
        self, channel: Channel, ready: PreparedKeeper, log: OutputLog, tee: Tee | None, tee_errors: Tee | None
    ) -> None:
        self._channel = channel
        self._signal_pipe = ready.signal_pipe
        self._identity = ready.identity
        self._log = log
        self._tee, self._tee_errors = tee, tee_errors
        self._tees = [one for one in (tee, tee_errors) if one is not None]
        self._pumps: list[Pump] = []
        self._agent = 0
        self._status: int | None = None
        self._childless = False
        self._user_seconds = self._system_seconds = 0.0
        self._peak_memory = 0
        self._termination: Termination | None = None
        self._linger_until: float | None = None
        self._alive_until: float | None = None
        self._reported = (time.monotonic(), 0)
        self._started = 0.0
        self._ended = 0.0
        self._ended_sent = False
        self._must_exit = False

    def start(self, plan: dict[str, Any], stdin: int) -> bool:
        out, out_end = os.pipe()
        err, err_end = os.pipe()
        self._pumps = [Pump(out, self._log, self._tee), Pump(err, self._log, self._tee_errors)]
        self._started = time.monotonic()
        self._keep_alive(plan["keep_alive_seconds"])
        try:
            self._agent = spawn(plan["argv"], plan["env"], plan["cwd"], (stdin, out_end, err_end))
        except CannotStart as failure:
            said = {"kind": "failed", "reason": str(failure), "is_machine_error": failure.is_machine_error}
            self._channel.send(said)
            for pump in self._pumps:
                pump.close()
            return False
        finally:
            for descriptor in (stdin, out_end, err_end):
                os.close(descriptor)
        self._channel.send({"kind": "started", "agent": _identity_of(self._agent), "keeper": self._identity})
        return True

    def watch(self) -> None:
        """Until the tree is gone, or until it cannot be ended and the worker knows it."""
        while not self._childless:
            self._wait()
            self._reap()
            self._check_deadlines()
            if self._termination is not None and not self._childless:
                self._termination.step(self._reap)
        self._send_ended()

    def _wait(self) -> None:
        poll = select.poll()
        poll.register(self._signal_pipe, select.POLLIN)
        if self._channel.is_open:
            poll.register(self._channel, select.POLLIN | (select.POLLOUT if self._channel.has_more() else 0))
        for pump in self._pumps:
            if pump.wants_more():
                poll.register(pump, select.POLLIN)
        for tee in self._waiting_tees():
            poll.register(tee, select.POLLOUT)
        ready = {descriptor for descriptor, _ in poll.poll(self._poll_timeout())}
        if self._signal_pipe.fileno() in ready and self._got_end_signal():
            self.end(_WORKER_GONE_GRACE, "the keeper was asked to end")
        if self._channel.fileno() in ready:
            self._listen()
        for pump in self._pumps:
            if pump.fileno() in ready:
                pump.move()
        for tee in self._waiting_tees():
            tee.flush()

    def _got_end_signal(self) -> bool:
        """Whether a signal told the keeper to exit since the last call."""
        told = bool(set(_END_SIGNALS).intersection(self._signal_pipe.read()))
        self._must_exit = self._must_exit or told
        return told

    def _waiting_tees(self) -> list[Tee]:
        return [tee for tee in self._tees if tee.waits_until() is not None]

    def _poll_timeout(self) -> float | None:
        """Milliseconds until something is due; None if nothing is."""
        due = [self._alive_until, self._linger_until, self._report_due()]
        if self._termination is not None:
            due.append(self._termination.wakes_at())
        due += [tee.waits_until() for tee in self._tees]
        times = [moment for moment in due if moment is not None]
        # Rounded up, since a wake-up just before the time would be useless.
        return max(0.0, min(times) - time.monotonic()) * 1000 + 1 if times else None

    def _listen(self) -> None:
        self._channel.flush()
        for order in self._channel.receive():
            self.handle_order(order)
        if not self._channel.is_open:
            self.end(_WORKER_GONE_GRACE, "the worker is gone")

    def handle_order(self, order: dict[str, Any]) -> None:
        match order:
            case {"order": "stop", "grace": grace, "why": why}:
                self.end(float(grace), str(why))
            case {"order": "keep_alive", "seconds": seconds}:
                self._keep_alive(seconds)

    def _keep_alive(self, seconds: float | None) -> None:
        self._alive_until = None if seconds is None else time.monotonic() + seconds

    def end(self, grace: float, why: str) -> None:
        self._alive_until = self._linger_until = None
        if self._termination is None:
            self._termination = Termination(grace, why)
        else:
            self._termination.shorten_grace(grace)

    def _reap(self) -> None:
        try:
            while (ended := os.wait4(-1, os.WNOHANG))[0]:
                pid, status, used = ended
                self._user_seconds += used.ru_utime
                self._system_seconds += used.ru_stime
                self._peak_memory = max(self._peak_memory, used.ru_maxrss)
                if pid == self._agent and self._status is None:
                    self._status, self._ended = status, time.monotonic()
                    if sys.platform != "linux":
                        end_group(self._agent)  # orphans do not become the keeper's children there
        except ChildProcessError:
            self._childless = True

    def _check_deadlines(self) -> None:
        now = time.monotonic()
        if self._alive_until is not None and now >= self._alive_until:
            self.end(_WORKER_GONE_GRACE, "the worker did not renew in time")
        if self._status is not None and self._termination is None and not self._childless:
            if self._linger_until is None:
                self._linger_until = now + _LINGER_SECONDS
            elif now >= self._linger_until:
                self.end(_LEFTOVER_GRACE, LEFT_BEHIND)
        due = self._report_due()
        if due is not None and now >= due:
            self._report(now)
        if (
            self._termination is not None
            and self._termination.forced_at
            and now > self._termination.forced_at + _GIVE_UP_SECONDS
        ):
            self._send_ended()

    def _report_due(self) -> float | None:
        when, count = self._reported
        return when + _REPORT_SECONDS if count != self._count() and not self._ended_sent else None

    def _count(self) -> int:
        return sum(pump.count for pump in self._pumps)

    def _report(self, now: float) -> None:
        """Shows activity. A worker that does not read gets no more of these messages."""
        self._reported = (now, self._count())
        if self._channel.is_open and not self._channel.has_more():
            self._channel.send({"kind": "output", "stdout": self._pumps[0].count, "stderr": self._pumps[1].count})

    def _send_ended(self) -> None:
        if self._ended_sent:
            return
        self._ended_sent = True
        if self._childless:
            for pump in self._pumps:
                pump.drain()
        status, termination = self._status, self._termination
        self._channel.send(
            {
                "kind": "ended",
                "exit_code": os.WEXITSTATUS(status) if status is not None and os.WIFEXITED(status) else None,
                "signal": os.WTERMSIG(status) if status is not None and os.WIFSIGNALED(status) else None,
                "user_seconds": self._user_seconds,
                "system_seconds": self._system_seconds,
                "peak_memory_bytes": self._peak_memory * (1 if sys.platform == "darwin" else 1024),
                "wall_seconds": (self._ended or time.monotonic()) - self._started,
                "stdout_bytes": self._pumps[0].count,
                "stderr_bytes": self._pumps[1].count,
                "stdout_tail": self._pumps[0].tail.text(),
                "lost_bytes": self._log.lost,
                "log_problem": self._log.problem,
                "tree_ended_because": termination.why if termination is not None else None,
                "is_tree_gone": self._childless,
            }
        )

    def flush_last_message(self) -> bool:
        """Sends the last message, until the worker has read it or is gone, or a signal tells the keeper to exit.
        Returns whether it may have another run.

        It receives nothing: after the last message the worker may already have sent the next plan. A write error shows
        that the worker is gone.
        """
        self._log.close()
        while self._channel.has_more() or self._waiting_tees():
            poll = select.poll()
            poll.register(self._signal_pipe, select.POLLIN)
            if self._channel.has_more():
                poll.register(self._channel, select.POLLOUT)
            times = []
            for tee in self._waiting_tees():
                poll.register(tee, select.POLLOUT)
                times.append(tee.waits_until() or 0.0)
            poll.poll(max(0.0, min(times) - time.monotonic()) * 1000 + 1 if times else None)
            if self._got_end_signal():
                return False
            for tee in self._waiting_tees():
                tee.flush()
            self._channel.flush()
        return not self._must_exit
