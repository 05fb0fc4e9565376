"""Sleeping until something happens in a directory: inotify on Linux, kqueue on macOS, a slow look elsewhere."""

from __future__ import annotations

import os
import select
import sys
import time
from struct import unpack_from

from mam.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_ACCESS, _MODIFY, _CLOSE_WRITE, _MOVED_TO, _DELETE = 0x1, 0x2, 0x8, 0x80, 0x200
_NOT_ANY_MORE = 0x4 | 0x400 | 0x800
"""Of a file: its links or modes, its end, its move."""
_DO_NOT_FOLLOW = 0x02000000
_LOOK_SECONDS = 0.25
_DEAF_SECONDS = 0.01

BELL = ".bell"
"""A file that is opened and closed when something happened that is no change of a record."""


class News(Frozen):
    """What is worth waking up for."""

    events: int
    concerns: Callable[[bytes], bool]
    """Whether a file of this name does."""


def records_changed() -> News:
    """The lock and temporary files begin with a dot: whoever only looks touches them too, and must wake nobody."""
    return News(
        events=_MOVED_TO | _CLOSE_WRITE | _DELETE,
        concerns=lambda name: not name.startswith(b".") or name == os.fsencode(BELL),
    )


def rung(name: str) -> News:
    """A bell of that name; to read it is to ring it."""
    return News(events=_ACCESS, concerns=lambda found: found == os.fsencode(name))


def written_itself() -> News:
    """Of a file and not of a directory: written, or not the file of that name any more."""
    return News(events=_MODIFY | _NOT_ANY_MORE | _DO_NOT_FOLLOW, concerns=lambda _name: True)


class Happened(Frozen):
    """One thing that inotify tells."""

    kind: int
    name: bytes

    @property
    def written(self) -> bool:
        return bool(self.kind & _CLOSE_WRITE)


UNKNOWN = Happened(kind=0, name=b"")
"""Something, where the system does not say what."""

COMING = Happened(kind=_MODIFY, name=b"")
"""What is written before the file that is told at once."""


class Watch:
    """Opened before the last look at the directory, so that nothing can happen unseen in between."""

    def __init__(self, path: str, news: News, *, first: str | None = None, before: str | None = None) -> None:
        """What is written into the file `first` is told at once, and so is what is written into another one `before`
        that. Both are left out where the system does not say what happened where."""
        self._news: dict[int, News] = {}
        self._before: int | None = None
        self._descriptor = self._first = None
        if sys.platform == "linux":
            self._descriptor = self._inotify(path, news)
            if first is not None and self._descriptor is not None:
                self._first = self._inotify(first, written_itself())
                if before is not None and self._first is not None:
                    self._before = _watched(self._first, before, written_itself())
        self._directory = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._deaf_until = 0.0
        self.is_over = False
        """Whether the file that is told at once, or the directory, is not there any more, so that another watch is
        needed."""

    def close(self) -> None:
        for descriptor in (self._directory, self._descriptor, self._first):
            if descriptor is not None and descriptor >= 0:
                os.close(descriptor)
        self._directory, self._descriptor, self._first = -1, None, None

    def __del__(self) -> None:
        """A user has few of these descriptors, and whoever forgets a store forgets its watches too."""
        if hasattr(self, "_directory"):
            self.close()

    def wait(self, timeout: float) -> bool:
        """True when the directory changed since the last call; False when the time ran out."""
        return bool(self.happened(timeout))

    def happened(self, timeout: float) -> list[Happened]:
        """What did since the last call; nothing when the time ran out."""
        if self._descriptor is not None:
            return self._wait_inotify(self._descriptor, timeout)
        if sys.platform == "darwin":
            return [UNKNOWN] if _wait_kqueue(self._directory, timeout) else []
        return [UNKNOWN] if self._look(timeout) else []

    def await_first(self, timeout: float) -> None:
        """Until something is written into one of the two files that are told at once. `happened` still tells of it."""
        if self._first is not None:
            poll = select.poll()
            poll.register(self._first, select.POLLIN)
            poll.poll(timeout * 1000)

    def _look(self, timeout: float) -> bool:
        """Only where the system offers nothing better."""
        before, ends = os.fstat(self._directory).st_mtime_ns, time.monotonic() + timeout
        while (left := ends - time.monotonic()) > 0:
            if os.fstat(self._directory).st_mtime_ns != before:
                return True
            time.sleep(min(left, _LOOK_SECONDS))
        return False

    def _inotify(self, path: str, news: News) -> int | None:
        import ctypes  # only for those who wait: it costs more than a claim

        descriptor = int(ctypes.CDLL(None, use_errno=True).inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK))
        if descriptor < 0:
            return None  # no instances left for this user; the slow look will do
        if _watched(descriptor, path, news) is None:
            os.close(descriptor)
            return None
        self._news[descriptor] = news
        return descriptor

    def _wait_inotify(self, descriptor: int, timeout: float) -> list[Happened]:
        """One change of mam's own is half a dozen events in the directory, of which none says more than what came
        `first`: after any of them the directory is left alone for a moment, and tells all of it then."""
        now = time.monotonic()
        ends = now + timeout
        while True:
            is_deaf = self._first is not None and now < self._deaf_until
            poll = select.poll()
            if self._first is not None:
                poll.register(self._first, select.POLLIN)
            if not is_deaf:
                poll.register(descriptor, select.POLLIN)
            wakes = min(ends, self._deaf_until) if is_deaf else ends
            ready = [number for number, _ in poll.poll(max(0.0, wakes - now) * 1000)]
            now = time.monotonic()
            if ready:
                self._deaf_until = now + _DEAF_SECONDS
            if found := [happened for number in ready for happened in self._read(number)]:
                return found
            if now >= ends and not ready:
                return []

    def _read(self, descriptor: int) -> Iterator[Happened]:
        """A run of inotify events: the number of the watch, what happened, two words more, the last of them the length
        of the name that follows. An overflow has no watch, and concerns everybody."""
        try:
            told = os.read(descriptor, 1 << 12)
        except BlockingIOError:
            return
        news, at = self._news[descriptor], 0
        while at < len(told):
            number, kind, _, length = unpack_from("=iIII", told, at)
            name = told[at + 16 : at + 16 + length].rstrip(b"\0")
            at += 16 + length
            self.is_over = self.is_over or (descriptor == self._first and kind != _MODIFY)
            if number < 0:
                yield UNKNOWN
            elif descriptor == self._first and number == self._before:
                yield COMING
            elif news.concerns(name):
                yield Happened(kind=kind, name=name)


def _watched(descriptor: int, path: str, news: News) -> int | None:
    """The number by which inotify tells of it; None when it cannot be watched."""
    import ctypes

    number = int(ctypes.CDLL(None, use_errno=True).inotify_add_watch(descriptor, os.fsencode(path), news.events))
    return None if number < 0 else number


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
