"""Finds, signals and ends the descendants of a process.

A fork can happen between two scans, so one scan proves nothing. On Linux, orphans become children of the process that
ends the tree. It kills all descendants, parents first, and repeats until the kernel reports that it has no children.
Nothing is left then, since dead processes do not fork.
"""

from __future__ import annotations

import errno
import os
import signal
import time

from mam.machine.processes import list_processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    Finder = Callable[[int], list[int]]

_ONE_THREAD = 3  # links of the thread directory: itself, its parent, and one per thread
_AT_ONCE = 500  # descriptors, of the 1024 that a process usually may have
_SHORTEST_REST, _LONGEST_REST = 0.002, 0.25
_ROUND_SECONDS = 0.5  # then the caller does its other duties and comes back


class Termination:
    """Ends all descendants of this process step by step: SIGTERM, and SIGKILL after the grace. The process has other
    duties meanwhile: it calls `step` whenever its time has come, until no child is left."""

    def __init__(self, grace: float, why: str) -> None:
        self.why = why
        self.forced_at: float | None = None
        self._deadline = time.monotonic() + max(0.0, grace)
        self._asked = False
        self._next = 0.0
        self._rest = _SHORTEST_REST

    def shorten_grace(self, grace: float) -> None:
        """A later call can only shorten the grace."""
        self._deadline = min(self._deadline, time.monotonic() + max(0.0, grace))
        self._next = min(self._next, self._deadline)

    def wakes_at(self) -> float:
        return self._next

    def step(self, reap: Callable[[], object], spare: Collection[int] = ()) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        if not self._asked and now < self._deadline:
            terminate_descendants(self._deadline, spare)
            self._next = self._deadline
        elif now >= self._deadline:
            self.forced_at = self.forced_at or now
            is_quiet = kill_descendants(reap, spare)
            # Ending takes time; a process that cannot be ended must not cost a whole CPU.
            self._rest = min(self._rest * 1.5, _LONGEST_REST) if is_quiet else _SHORTEST_REST
            self._next = time.monotonic() + self._rest
        self._asked = True


def terminate_descendants(until: float, spare: Collection[int] = ()) -> None:
    """Sends SIGTERM, and SIGCONT so that stopped processes can react. Gives up at `until`, since a large tree may take
    longer than its grace.

    All are found before the first is signalled: a process that ends at once no longer leads to its children.
    """
    found: list[tuple[list[int], int]] = []
    walk(os.getpid(), lambda pids, parent: found.append((pids, parent)), spare, until)
    for pids, parent in found:
        if time.monotonic() < until:
            signal_children(pids, parent, signal.SIGTERM, signal.SIGCONT)


def kill_descendants(reap: Callable[[], object], spare: Collection[int] = ()) -> bool:
    """One round. Returns True if the last scan found no new process; signalled ones may still be ending."""
    me, signalled = os.getpid(), set[int]()
    ends = time.monotonic() + _ROUND_SECONDS
    while time.monotonic() < ends:
        before = len(signalled)
        _kill_groups(set(child_finder()(me)).difference(spare))
        # Not only the children: a killed process needs CPU time to end, and its children wait for that.
        walk(me, lambda pids, parent: _kill_new(pids, parent, signalled), spare, ends)
        reap()
        if len(signalled) == before:
            return True
    return False


def _kill_new(pids: list[int], parent: int, signalled: set[int]) -> None:
    signal_children([pid for pid in pids if pid not in signalled], parent, signal.SIGKILL)
    signalled.update(pids)


def _kill_groups(children: Collection[int]) -> None:
    """A signal to a group reaches all its members at once, wherever in the tree they are.

    All members of a group are in one session, which began below this process. The group's number cannot be reused while
    it has a member that only this process can reap.
    """
    groups = set()
    for pid in children:
        try:
            groups.add(os.getpgid(pid))
        except OSError:
            continue
    for group in groups - {os.getpgrp()}:
        try:
            os.killpg(group, signal.SIGKILL)
        except OSError:
            continue


def walk(
    root: int, visit: Callable[[list[int], int], object], spare: Collection[int] = (), until: float = float("inf")
) -> None:
    """Calls `visit(pids, parent)` for all descendants, parents first."""
    find = child_finder()
    seen = {root, *spare}
    todo = [root]
    while todo and time.monotonic() < until:
        parent = todo.pop()
        if fresh := [pid for pid in find(parent) if pid not in seen]:
            seen.update(fresh)
            visit(fresh, parent)
            todo += fresh


def signal_children(pids: list[int], parent: int, *numbers: int) -> None:
    """Signals children of `parent` with few system calls: among hundreds of busy processes this one gets little CPU
    time.

    Only this process reaps its own children, so their pids are safe.
    """
    if parent == os.getpid() or not hasattr(os, "pidfd_open"):
        _signal_each(os.kill, pids, numbers)
        return
    for begin in range(0, len(pids), _AT_ONCE):
        _signal_others(pids[begin : begin + _AT_ONCE], parent, numbers)


def _signal_others(pids: list[int], parent: int, numbers: tuple[int, ...]) -> None:
    """Uses descriptors that are opened before the parent's children are read again. A pid has one owner at a time: a
    descriptor belongs to the child or to an ended process, which gets no signal."""
    opened: dict[int, int] = {}
    try:
        for pid in pids:
            try:
                opened[pid] = os.pidfd_open(pid)
            except OSError as error:
                if error.errno == errno.EMFILE and opened:
                    os.close(opened.popitem()[1])  # the scan needs a descriptor too; the next round continues
                    break
        find = child_finder()
        still = opened.keys() & {*find(parent), *find(os.getpid())}
        _signal_each(signal.pidfd_send_signal, [opened[pid] for pid in still], numbers)
    finally:
        for descriptor in opened.values():
            os.close(descriptor)


def _signal_each(send: Callable[[int, int], None], those: list[int], numbers: tuple[int, ...]) -> None:
    for one in those:
        try:
            for number in numbers:
                send(one, number)
        except OSError:
            continue  # it has ended, or belongs to another user; the next round shows which


def child_finder() -> Finder:
    """How to find the children of a process on this system."""
    return _children_by_file if _has_children_files() else _children_by_table()


def _has_children_files() -> bool:
    """Linux has them, unless the kernel was built without."""
    return os.path.exists(f"/proc/self/task/{os.getpid()}/children")


def _children_by_file(pid: int) -> list[int]:
    """A child belongs to the thread that forked it."""
    found: list[int] = []
    try:
        threads = f"/proc/{pid}/task"
        for thread in [pid] if os.stat(threads).st_nlink == _ONE_THREAD else os.listdir(threads):
            found += map(int, _read(f"{threads}/{thread}/children").split())
    except OSError:
        pass  # it has ended; its children are found at their new parent
    return found


def _read(path: str) -> bytes:
    """Without a file object, which takes as long to create as the read: among hundreds of processes, time is short."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        whole = b""
        while part := os.read(descriptor, 1 << 16):
            whole += part
        return whole
    finally:
        os.close(descriptor)


def _children_by_table() -> Finder:
    """One scan of all processes, for kernels without the list of children, and for other systems."""
    below: dict[int, list[int]] = {}
    for entry in list_processes():
        below.setdefault(entry.parent, []).append(entry.pid)
    return lambda pid: below.get(pid, [])


def end_group(group: int) -> None:
    """Ends the rest of a group whose leader has just ended, within half a second."""
    for number in (signal.SIGTERM, *[0] * 10, signal.SIGKILL):
        try:
            os.killpg(group, number)
        except OSError:
            return
        time.sleep(0.05)
