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


def closed(name: str) -> News:
    return News(events=_CLOSE_WRITE, concerns=lambda found: found == os.fsencode(name))


class Happened(Frozen):
    """One thing that inotify tells."""

    kind: int
    name: bytes

    @property
    def written(self) -> bool:
        return bool(self.kind & _CLOSE_WRITE)


UNKNOWN = Happened(kind=0, name=b"")
"""Something, where the system does not say what."""


class Watch:
    """Opened before the last look at the directory, so that nothing can happen unseen in between."""

    def __init__(self, path: str, news: News, *more: tuple[str, News]) -> None:
        """`more` directories only where the system says what happened in which."""
        self._news: dict[int, News] = {}
        self._descriptor = self._inotify([(path, news), *more]) if sys.platform == "linux" else None
        self._directory = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def close(self) -> None:
        os.close(self._directory)
        if self._descriptor is not None:
            os.close(self._descriptor)

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

    def _look(self, timeout: float) -> bool:
        """Only where the system offers nothing better."""
        before, ends = os.fstat(self._directory).st_mtime_ns, time.monotonic() + timeout
        while (left := ends - time.monotonic()) > 0:
            if os.fstat(self._directory).st_mtime_ns != before:
                return True
            time.sleep(min(left, _LOOK_SECONDS))
        return False

    def _inotify(self, places: list[tuple[str, News]]) -> int | None:
        import ctypes  # only for those who wait: it costs more than a claim

        library = ctypes.CDLL(None, use_errno=True)
        descriptor = int(library.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK))
        if descriptor < 0:
            return None  # no instances left for this user; the slow look will do
        for path, news in places:
            number = int(library.inotify_add_watch(descriptor, os.fsencode(path), news.events))
            if number < 0:
                os.close(descriptor)
                return None
            self._news[number] = news
        return descriptor

    def _wait_inotify(self, descriptor: int, timeout: float) -> list[Happened]:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        ends = time.monotonic() + timeout
        while poll.poll(max(0.0, ends - time.monotonic()) * 1000):
            try:
                told = os.read(descriptor, 1 << 16)
            except BlockingIOError:
                continue
            if found := list(self._concerning(told)):
                return found
        return []

    def _concerning(self, told: bytes) -> Iterator[Happened]:
        """A run of inotify events: the number of the watch, what happened, two words more, the last of them the length
        of the name that follows. An overflow has no watch, and concerns everybody."""
        while told:
            number, kind, _, length = (int.from_bytes(told[at : at + 4], sys.byteorder) for at in (0, 4, 8, 12))
            name = told[16 : 16 + length].rstrip(b"\0")
            news = self._news.get(number)
            if news is None or news.concerns(name):
                yield UNKNOWN if news is None else Happened(kind=kind, name=name)
            told = told[16 + length :]


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
