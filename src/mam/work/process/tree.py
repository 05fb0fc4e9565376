"""Everything below a process: finding it, asking it to end, ending it.

A fork can happen between two looks, so that one look proves nothing. On Linux orphans come to the process that ends
the tree, and that makes it simple: whoever kills what is below, parents first, again and again, until the kernel says
that there is no child left, has ended everything, since nobody that is dead starts a successor.
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

_ONE_THREAD = 3  # links of the directory of threads: itself, its parent, and one for each
_AT_ONCE = 500  # descriptors, of the 1024 that a process may usually have
_ROUND_SECONDS = 0.5  # then the caller looks after its other duties, and comes back


def terminate_descendants(until: float, spare: Collection[int] = ()) -> None:
    """SIGTERM, and SIGCONT so that those who were stopped can act on it. A forest of processes may take longer than
    the time they have, so it is given up then.

    All are found before the first is told: who ends at once leads to its children no more, and they would not be asked.
    """
    found: list[tuple[list[int], int]] = []
    walk(os.getpid(), lambda pids, parent: found.append((pids, parent)), spare, until)
    for pids, parent in found:
        if time.monotonic() < until:
            signal_children(pids, parent, signal.SIGTERM, signal.SIGCONT)


def kill_descendants(reap: Callable[[], object], spare: Collection[int] = ()) -> bool:
    """One round. True when nobody new turned up at its end; those who were told may still be dying then."""
    me, told = os.getpid(), set[int]()
    ends = time.monotonic() + _ROUND_SECONDS
    while time.monotonic() < ends:
        before = len(told)
        _kill_groups(set(child_finder()(me)).difference(spare))
        # Not only the children: who is killed must get the processor to die, and its own children wait for that.
        walk(me, lambda pids, parent: _kill_new(pids, parent, told), spare, ends)
        reap()
        if len(told) == before:
            return True
    return False


def _kill_new(pids: list[int], parent: int, told: set[int]) -> None:
    signal_children([pid for pid in pids if pid not in told], parent, signal.SIGKILL)
    told.update(pids)


def _kill_groups(children: Collection[int]) -> None:
    """A signal to a group reaches all its members at one instant, wherever in the tree they are.

    All members of a group are of one session, which was begun below this process; and a number with a member that only
    this process can reap has not passed to somebody else.
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
    root: int, tell: Callable[[list[int], int], object], spare: Collection[int] = (), until: float = float("inf")
) -> None:
    """Calls `tell(pids, parent)` for everything below, parents first."""
    find = child_finder()
    seen = {root, *spare}
    todo = [root]
    while todo and time.monotonic() < until:
        parent = todo.pop()
        if fresh := [pid for pid in find(parent) if pid not in seen]:
            seen.update(fresh)
            tell(fresh, parent)
            todo += fresh


def signal_children(pids: list[int], parent: int, *numbers: int) -> None:
    """Signals for children of `parent`, with few calls for each: hundreds of them may be busy, and whoever wants to end
    them gets its turn as seldom as each of them.

    Nobody but this process reaps its own children, so that their pids are safe.
    """
    if parent == os.getpid() or not hasattr(os, "pidfd_open"):
        _signal_each(os.kill, pids, numbers)
        return
    for begin in range(0, len(pids), _AT_ONCE):
        _signal_others(pids[begin : begin + _AT_ONCE], parent, numbers)


def _signal_others(pids: list[int], parent: int, numbers: tuple[int, ...]) -> None:
    """Through descriptors that are opened before the parent is asked once more for its children. A number has one
    holder at a time: a descriptor is that of the child, or that of somebody who has ended, and then reaches nobody."""
    opened: dict[int, int] = {}
    try:
        for pid in pids:
            try:
                opened[pid] = os.pidfd_open(pid)
            except OSError as error:
                if error.errno == errno.EMFILE and opened:
                    os.close(opened.popitem()[1])  # a look needs one too; the next round goes on
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
            continue  # it has ended, or is not ours to end; the next round sees which


def child_finder() -> Finder:
    """How to find the children of a process here."""
    return _children_by_file if _has_children_files() else _children_by_table()


def _has_children_files() -> bool:
    """Linux has them, unless its kernel was made without."""
    return os.path.exists(f"/proc/self/task/{os.getpid()}/children")


def _children_by_file(pid: int) -> list[int]:
    """A child belongs to the thread that forked it."""
    found: list[int] = []
    try:
        threads = f"/proc/{pid}/task"
        for thread in [pid] if os.stat(threads).st_nlink == _ONE_THREAD else os.listdir(threads):
            found += map(int, _read(f"{threads}/{thread}/children").split())
    except OSError:
        pass  # it has ended, and its children have a new parent, where they are found
    return found


def _read(path: str) -> bytes:
    """Without a file object, which takes as long to make as the kernel takes to answer: among hundreds of busy
    processes whoever looks for them has little time."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        whole = b""
        while part := os.read(descriptor, 1 << 16):
            whole += part
        return whole
    finally:
        os.close(descriptor)


def _children_by_table() -> Finder:
    """One look at everybody, for kernels without the list of children, and for other systems."""
    below: dict[int, list[int]] = {}
    for entry in list_processes():
        below.setdefault(entry.parent, []).append(entry.pid)
    return lambda pid: below.get(pid, [])


def end_group(group: int) -> None:
    """What is left of a group whose leader has just ended, within half a second."""
    for number in (signal.SIGTERM, *[0] * 10, signal.SIGKILL):
        try:
            os.killpg(group, number)
        except OSError:
            return
        time.sleep(0.05)
