"""Ends what earlier attempts at a job left running on this host, before the job runs again.

mam ends only processes that it can identify: same boot, same pid and start time, or an environment that names the job,
an earlier attempt and the store (`EarlierAttempts`). What could not be ended becomes one sentence in the record.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time

from mam.machine.environment import ATTEMPT, JOB, MARK
from mam.machine.processes import (
    ProcessEntry,
    ProcessId,
    identity_of,
    is_alive,
    list_processes,
    pid_namespace,
    read_process,
    send_signal,
)
from mam.util.clock import boot_id
from mam.util.frozen import Frozen
from mam.work.process.tree import walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    OrphanFinder = Callable[[], list[ProcessId]]
    """Returns the processes that exist now."""

KEEPER_SECONDS = 5.0
"""After a request to end, a keeper gives its tree three seconds, and needs less than one more."""
_GRACE_SECONDS = 2.0
_FORCE_SECONDS = 5.0
_GUARDIAN_SECONDS = 4.0
"""A guardian needs less than this to end what a killed keeper left."""
_DIGITS = 18
_INSIDE = "this worker runs inside the earlier attempt, which was therefore not ended"


class EarlierAttempts(Frozen):
    """The attempts at one job before a given one.

    When worker, guardian, keeper and agent are gone, only the environment identifies the processes that the agent
    started. mam checks every process, which is acceptable for the rare takeover. A process that changed its environment
    is not found, and only Linux shows environments.
    """

    job_id: str
    attempt: int
    mark: str
    """The store's mark: another store may have a job of the same id."""

    def find_orphans(self) -> list[ProcessId]:
        """Those of this user that run now."""
        if sys.platform != "linux":
            return []
        # The identity was read before the environment: if the pid was reused meanwhile, no wrong process is hit.
        return [
            identity_of(entry) for entry in list_processes() if not entry.dead and self._is_of(_environment(entry.pid))
        ]

    def _is_of(self, environment: dict[bytes, bytes]) -> bool:
        attempt = environment.get(ATTEMPT.encode(), b"")
        return (
            environment.get(JOB.encode()) == self.job_id.encode()
            and environment.get(MARK.encode()) == self.mark.encode()
            and attempt.isdigit()
            and len(attempt) <= _DIGITS
            and int(attempt) < self.attempt
        )


def _environment(pid: int) -> dict[bytes, bytes]:
    """Empty for processes of other users, of the kernel, and that have ended."""
    try:
        if os.stat(f"/proc/{pid}").st_uid != os.geteuid():
            return {}
        with open(f"/proc/{pid}/environ", "rb") as file:
            lines = file.read().split(b"\0")
    except OSError:
        return {}
    return {name: value for name, found, value in (line.partition(b"=") for line in lines) if found}


def end_earlier(process: dict[str, Any], find_orphans: OrphanFinder = list, *, host: str | None = None) -> str | None:
    """Ends the run that a record describes (`Started.to_json()`, and its `host` if known), and its orphans.

    Returns None if all of it is gone; otherwise what could not be done. Takes at most about sixteen seconds, and a
    moment if there is nothing to do.
    """
    known = [found for name in ("keeper", "agent") if (found := ProcessId.from_json(process.get(name))) is not None]
    if not known:
        return "the processes of the earlier attempt are not known, so they could not be ended"
    if (elsewhere := _elsewhere(known[0], process.get("host"), host or os.uname().nodename)) is not None:
        return elsewhere or None
    if any(_is_ancestor(one) for one in [*known, *find_orphans()]):
        return _INSIDE
    return _end_here(
        ProcessId.from_json(process.get("keeper")), ProcessId.from_json(process.get("agent")), find_orphans
    )


def end_orphans(find_orphans: OrphanFinder) -> str | None:
    """The same, if nothing else is known of the earlier attempt."""
    found = find_orphans()
    if any(map(_is_ancestor, found)):
        return _INSIDE
    return _end_here(None, None, find_orphans) if found else None


def _elsewhere(process: ProcessId, its_host: object, this_host: str) -> str | None:
    """None for a process of this machine and boot; otherwise what to report, which is nothing after a restart."""
    if process.boot_id == boot_id():
        if process.namespace in (0, pid_namespace()):
            return None
        return "the earlier attempt ran in another container of this machine and could not be ended from here"
    if its_host == this_host:
        return ""
    where = f"on {its_host}" if isinstance(its_host, str) and its_host else "on another host, or before a restart"
    return f"the earlier attempt ran {where} and could not be ended from here"


def _is_ancestor(process: ProcessId) -> bool:
    pid = os.getpid()
    while pid > 1 and (entry := read_process(pid)) is not None:
        if identity_of(entry) == process:
            return True
        pid = entry.parent
    return False


def _end_here(keeper: ProcessId | None, agent: ProcessId | None, find_orphans: OrphanFinder) -> str | None:
    if keeper is not None and send_signal(keeper, signal.SIGTERM):
        # The keeper knows its tree better than an observer.
        _wait_for_end([keeper], KEEPER_SECONDS)
    roots = [one for one in (keeper, agent) if one is not None and is_alive(one)]
    if roots := [*roots, *find_orphans()]:
        # Find all before the first signal, and remember them: an ended process does not lead to its children.
        tree = _members(roots, agent, lambda _one: None)
        _signal_all(tree, signal.SIGTERM)
        _signal_all(tree, signal.SIGCONT)
        _wait_for_end(tree, _GRACE_SECONDS)
        if left := _force(tree, agent, find_orphans):
            return f"of the earlier attempt {_pids(left)} could not be ended"
    unproven = [] if agent is None else _session_of_ended(agent)
    _wait_for_end(unproven, _GUARDIAN_SECONDS)
    if unproven := [one for one in unproven if is_alive(one)]:
        return f"{_pids(unproven)} may be left of the earlier attempt, which is not certain"
    return None


def _force(roots: list[ProcessId], agent: ProcessId | None, find_orphans: OrphanFinder) -> list[ProcessId]:
    """Stops them, so that none forks, then kills them; repeats until none is found. Returns those that remain."""

    def stop_all() -> list[ProcessId]:
        return _members([*roots, *find_orphans()], agent, lambda one: send_signal(one, signal.SIGSTOP))

    found: list[ProcessId] = []
    ends = time.monotonic() + _FORCE_SECONDS
    while time.monotonic() < ends:
        found += [one for one in stop_all() if one not in found]
        if again := [one for one in stop_all() if one not in found]:
            found += again
            continue
        _signal_all(found, signal.SIGKILL)
        _wait_for_end(found, 0.5)
        found = [one for one in found if is_alive(one)]
        roots = [one for one in roots if is_alive(one)]
        if not found:
            return []
    return [one for one in found if is_alive(one)]


def _members(roots: list[ProcessId], agent: ProcessId | None, visit: Callable[[ProcessId], object]) -> list[ProcessId]:
    """The roots, their descendants, and the agent's session while the agent lives, which proves that the session is its
    own.

    Calls `visit` for each process before it looks for its children.
    """
    found: dict[int, ProcessId] = {}

    def take(entry: ProcessEntry | None) -> None:
        if entry is not None and not entry.dead and entry.pid not in found:
            found[entry.pid] = identity_of(entry)
            visit(found[entry.pid])

    def take_each(pids: list[int]) -> None:
        for pid in pids:
            take(read_process(pid))

    def take_all(top: ProcessEntry) -> None:
        if top.pid not in found:
            take(top)
            walk(top.pid, lambda pids, _parent: take_each(pids))

    for root in roots:
        entry = read_process(root.pid)
        if entry is not None and identity_of(entry) == root:
            take_all(entry)
    if agent is not None and is_alive(agent):
        for entry in list_processes():
            if entry.session == agent.pid:
                take_all(entry)
    return list(found.values())


def _signal_all(processes: list[ProcessId], number: int) -> None:
    for process in processes:
        send_signal(process, number)


def _wait_for_end(processes: list[ProcessId], seconds: float) -> None:
    """Waits until all have ended, or the time is up."""
    ends = time.monotonic() + seconds
    for process in processes:
        while is_alive(process) and (left := ends - time.monotonic()) > 0:
            _wait_for_one(process, left)


def _wait_for_one(process: ProcessId, seconds: float) -> None:
    if not hasattr(os, "pidfd_open"):
        time.sleep(min(seconds, 0.05))
        return
    try:
        descriptor = os.pidfd_open(process.pid)
    except OSError:
        return
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.poll(seconds * 1000)
    finally:
        os.close(descriptor)


def _session_of_ended(agent: ProcessId) -> list[ProcessId]:
    """Processes in a session with the agent's pid after the agent has ended.

    They are probably the agent's, but a number alone is no proof, so they are reported and not signalled.
    """
    entry = read_process(agent.pid)
    if entry is not None and identity_of(entry) != agent:
        return []  # the pid was reused, which the kernel allows only when the session is empty
    return [
        identity_of(other)
        for other in list_processes()
        if other.session == agent.pid and not other.dead and other.start_time >= agent.start_time
    ]


def _pids(processes: list[ProcessId]) -> str:
    """Lists at most five pids."""
    shown = ", ".join(str(process.pid) for process in processes[:5])
    more = len(processes) - 5
    return f"process{'es' if len(processes) > 1 else ''} {shown}" + (f" and {more} more" if more > 0 else "")
