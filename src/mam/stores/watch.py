"""Sleeping until something happens in a directory: inotify on Linux, kqueue on macOS, a slow look elsewhere."""

from __future__ import annotations

import os
import select
import sys
import time

from mam.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MODIFY, _CLOSE_WRITE, _MOVED_TO, _DELETE = 0x2, 0x8, 0x80, 0x200
_LOOK_SECONDS = 0.25

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


def written(name: str) -> News:
    return News(events=_MODIFY, concerns=lambda found: found == os.fsencode(name))


class Watch:
    """Opened before the last look at the directory, so that nothing can happen unseen in between."""

    def __init__(self, path: str, news: News) -> None:
        self._news = news
        self._descriptor = _inotify(path, news.events) if sys.platform == "linux" else None
        self._directory = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def close(self) -> None:
        os.close(self._directory)
        if self._descriptor is not None:
            os.close(self._descriptor)

    def wait(self, timeout: float) -> bool:
        """True when the directory changed since the last call; False when the time ran out."""
        if self._descriptor is not None:
            return _wait_inotify(self._descriptor, self._news, timeout)
        if sys.platform == "darwin":
            return _wait_kqueue(self._directory, timeout)
        return self._look(timeout)

    def _look(self, timeout: float) -> bool:
        """Only where the system offers nothing better."""
        before, ends = os.fstat(self._directory).st_mtime_ns, time.monotonic() + timeout
        while (left := ends - time.monotonic()) > 0:
            if os.fstat(self._directory).st_mtime_ns != before:
                return True
            time.sleep(min(left, _LOOK_SECONDS))
        return False


def _inotify(path: str, events: int) -> int | None:
    import ctypes  # only for those who wait: it costs more than a claim

    library = ctypes.CDLL(None, use_errno=True)
    descriptor = int(library.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK))
    if descriptor < 0:
        return None  # no instances left for this user; the slow look will do
    if library.inotify_add_watch(descriptor, os.fsencode(path), events) < 0:
        os.close(descriptor)
        return None
    return descriptor


def _wait_inotify(descriptor: int, news: News, timeout: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    ends = time.monotonic() + timeout
    while poll.poll(max(0.0, ends - time.monotonic()) * 1000):
        try:
            happened = os.read(descriptor, 1 << 16)
        except BlockingIOError:
            continue
        if any(map(news.concerns, _names(happened))):
            return True
    return False


def _names(happened: bytes) -> Iterator[bytes]:
    """The file names in a run of inotify events: 16 bytes of head, the last four of them the length of the name."""
    while happened:
        length = int.from_bytes(happened[12:16], sys.byteorder)
        yield happened[16 : 16 + length].rstrip(b"\0")
        happened = happened[16 + length :]


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
