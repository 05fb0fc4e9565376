"""Waits until something happens in a directory: inotify on Linux, kqueue on macOS, polling elsewhere."""

from __future__ import annotations

import os
import select
import sys
import time
from struct import unpack_from
from threading import Lock

from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_ACCESS = 0x1
_POLL_SECONDS = 0.25


class WatchFilter(Frozen):
    """The events that end a wait."""

    events: int
    matches: Callable[[bytes], bool]
    """Whether events of a file with this name do."""


def reads_of(name: str) -> WatchFilter:
    """Reads of the file with this name (see mam.stores.sqlite.wake_file)."""
    return WatchFilter(events=_ACCESS, matches=lambda found: found == os.fsencode(name))


class DirectoryWatch:
    """Open it before you check the state of the directory, so that no change is missed in between. One thread waits;
    another may close the watch, which ends the wait."""

    def __init__(self, path: str, only: WatchFilter) -> None:
        self._filter = only
        self._inotify = _inotify(path, only) if sys.platform == "linux" else None
        self._directory = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._wakes, self._wake = os.pipe()
        self._guard = Lock()
        self._waits = self._is_closed = False

    def close(self) -> None:
        """If a thread waits, it is woken and closes the descriptors itself."""
        with self._guard:
            was_closed, self._is_closed = self._is_closed, True
            if self._waits:
                os.write(self._wake, b"\0")
                return
        if not was_closed:
            self._close_descriptors()

    def __del__(self) -> None:
        """A user has few inotify descriptors, so a store that is garbage collected must release its watches."""
        if hasattr(self, "_is_closed"):
            self.close()

    def wait(self, timeout: float) -> bool:
        """True when something happened since the last call; False after the timeout, or when the watch was closed."""
        with self._guard:
            if self._is_closed:
                return False
            self._waits = True
        try:
            return self._wait(timeout)
        finally:
            if self._was_closed_meanwhile():
                self._close_descriptors()

    def _was_closed_meanwhile(self) -> bool:
        with self._guard:
            self._waits = False
            return self._is_closed

    def _wait(self, timeout: float) -> bool:
        ends = time.monotonic() + timeout
        if self._inotify is None:
            return self._poll(timeout)
        poll = select.poll()
        for descriptor in (self._inotify, self._wakes):
            poll.register(descriptor, select.POLLIN)
        while True:
            ready = [number for number, _ in poll.poll(max(0.0, ends - time.monotonic()) * 1000)]
            if self._wakes in ready or not ready:
                return False
            if self._has_matching_event(self._inotify):
                return True

    def _poll(self, timeout: float) -> bool:
        """Without inotify: kqueue, or polling where there is neither."""
        if sys.platform == "darwin":
            return _wait_kqueue(self._directory, timeout)
        before, ends = os.fstat(self._directory).st_mtime_ns, time.monotonic() + timeout
        while (left := ends - time.monotonic()) > 0 and not self._is_closed:
            if os.fstat(self._directory).st_mtime_ns != before:
                return True
            time.sleep(min(left, _POLL_SECONDS))
        return False

    def _has_matching_event(self, inotify: int) -> bool:
        """Parses inotify events (struct inotify_event: watch, mask, cookie, length, then the name). An overflow has
        watch -1 and counts as a match."""
        try:
            data = os.read(inotify, 1 << 12)
        except BlockingIOError:
            return False
        at, found = 0, False
        while at < len(data):
            number, _kind, _, length = unpack_from("=iIII", data, at)
            name = data[at + 16 : at + 16 + length].rstrip(b"\0")
            at += 16 + length
            found = found or number < 0 or self._filter.matches(name)
        return found

    def _close_descriptors(self) -> None:
        for descriptor in (self._directory, self._inotify, self._wakes, self._wake):
            if descriptor is not None:
                os.close(descriptor)


def _inotify(path: str, only: WatchFilter) -> int | None:
    """None when the user has no instances left, or the directory cannot be watched; then mam polls."""
    import ctypes  # imported here: it costs more time than a claim

    library = ctypes.CDLL(None, use_errno=True)
    descriptor = int(library.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK))
    if descriptor >= 0 and int(library.inotify_add_watch(descriptor, os.fsencode(path), only.events)) < 0:
        os.close(descriptor)
        return None
    return descriptor if descriptor >= 0 else None


def _wait_kqueue(directory: int, timeout: float) -> bool:
    if sys.platform == "darwin":
        queue = select.kqueue()
        try:
            change = select.kevent(
                directory,
                filter=select.KQ_FILTER_VNODE,
                flags=select.KQ_EV_ADD | select.KQ_EV_CLEAR,
                fflags=select.KQ_NOTE_WRITE,
            )
            return bool(queue.control([change], 1, timeout))
        finally:
            queue.close()
    return False
