"""Everything below a process: finding it, asking it to end, ending it.

A fork can happen between two looks, so that one look proves nothing. Whoever is found is stopped before the look at its
children: a stopped process has no more of them. What is still missed is found in the next round, and the rounds go on
until the kernel says that there is no child left.
"""

from __future__ import annotations

import os
import signal
import time

from mam.work.processes import look, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    Finder = Callable[[int], list[int]]

_FREEZE_SECONDS = 0.05  # then the caller looks after its other duties, and comes back


def ask_everything_below(root: int, spare: Collection[int] = ()) -> set[int]:
    """SIGTERM, and SIGCONT so that those who were stopped can act on it; the pids of those who were told."""

    def tell(pid: int, parent: int) -> None:
        signal_child(pid, parent, signal.SIGTERM)
        signal_child(pid, parent, signal.SIGCONT)

    return walk(root, tell, spare)


def kill_everything_below_me(reap: Callable[[], object], spare: Collection[int] = ()) -> set[int]:
    """One round: stop all, then kill all; the pids of those who were told.

    Groups come first: a signal to a group reaches every member at one instant, which no walk can do, and a fork bomb
    leaves a walker little time. `reap` is called between the looks, so that the list of children stays short.
    """
    me = os.getpid()
    ends = time.monotonic() + _FREEZE_SECONDS
    found: set[int] = set()
    while True:
        reap()
        groups = _groups_of_children(me, spare)
        _signal_groups(groups, signal.SIGSTOP)
        fresh = walk(me, lambda pid, parent: signal_child(pid, parent, signal.SIGSTOP), spare, found)
        found |= fresh
        if not fresh or time.monotonic() > ends:
            break
    _signal_groups(_groups_of_children(me, spare), signal.SIGKILL)
    return found | walk(me, lambda pid, parent: signal_child(pid, parent, signal.SIGKILL), spare)


def walk(
    root: int, tell: Callable[[int, int], None], spare: Collection[int] = (), known: Collection[int] = ()
) -> set[int]:
    """Calls `tell(pid, parent)` for everything below, parents first, except for what is known; returns who was new."""
    find = finder()
    fresh: set[int] = set()
    seen = {root, *spare}
    todo = [root]
    while todo:
        parent = todo.pop()
        for pid in find(parent):
            if pid in seen:
                continue
            seen.add(pid)
            if pid not in known:
                tell(pid, parent)
                fresh.add(pid)
            todo.append(pid)
    return fresh


def signal_child(pid: int, parent: int, number: int) -> None:
    """A signal for a child of `parent`. Nobody but this process reaps its own children, so that their pids are safe.

    Others are told through a descriptor that was opened before their parent was looked up.
    """
    try:
        if parent == os.getpid() or not hasattr(os, "pidfd_open"):
            os.kill(pid, number)
            return
        descriptor = os.pidfd_open(pid)
        try:
            entry = look(pid)
            if entry is not None and entry.parent in (parent, os.getpid()):
                signal.pidfd_send_signal(descriptor, number)
        finally:
            os.close(descriptor)
    except OSError:
        pass  # it has ended, or is not ours to end; the next round sees which


def finder() -> Finder:
    """How to find the children of a process here."""
    return _children_by_file if os.path.exists(_own_children_file()) else _children_by_table()


def _own_children_file() -> str:
    return f"/proc/self/task/{os.getpid()}/children"


def _children_by_file(pid: int) -> list[int]:
    """A child belongs to the thread that forked it."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
    except OSError:
        pass  # it has ended, and its children have a new parent, where they are found
    return found


def _children_by_table() -> Finder:
    """One look at everybody, for kernels without the list of children, and for other systems."""
    below: dict[int, list[int]] = {}
    for entry in table():
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


def _groups_of_children(me: int, spare: Collection[int]) -> set[int]:
    """Groups with a member that this process has not reaped: such a number cannot have passed to somebody else.

    All members of a group are of one session, and the session was begun below this process.
    """
    groups = set()
    for pid in finder()(me):
        if pid not in spare:
            try:
                groups.add(os.getpgid(pid))
            except OSError:
                continue
    groups.discard(os.getpgrp())
    return groups


def _signal_groups(groups: Collection[int], number: int) -> None:
    for group in groups:
        try:
            os.killpg(group, number)
        except OSError:
            continue
