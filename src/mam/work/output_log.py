"""The output of one attempt on disk: written as it comes, bounded in size, readable while it grows.

A log is named by a path. The file at this path is the first segment, which most outputs do not exceed. It is never
rotated, since the beginning shows what was asked. Later segments are in a directory beside it, which keeps the newest.
The name of such a segment is the number of bytes before it, so that a gap between two segments shows how many bytes are
missing: rotated bytes, and bytes that a full disk did not take. No other state exists, so a killed keeper leaves a
valid log.
"""

from __future__ import annotations

import os
import stat
import time

from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mam.stores.file_watch import DirectoryWatch

LIMIT = 64 << 20
MORE = ".more"
_SEGMENTS = 8
_DIGITS = 20
_CHUNK = 1 << 18
_MODIFY, _TOUCHED, _CREATE_IN = 0x2, 0x4, 0x100  # of inotify
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # NONBLOCK: a pipe in the place of a file


class Segment(Frozen):
    """One file, and its offset in the whole output."""

    path: str
    start: int
    size: int

    @property
    def end(self) -> int:
        return self.start + self.size


class OutputLog:
    """The writer. It never raises: the agent continues if its log cannot, and the lost bytes are counted."""

    def __init__(self, path: str, limit: int = LIMIT) -> None:
        self._segment_limit = max(1, limit // _SEGMENTS)
        self._path = path
        self._directory = -1
        self._current = -1
        self._start = 0
        self._ring: list[int] = []
        """The offsets of the segments after the first, oldest first."""
        self.position = 0
        """How many bytes came, stored or not."""
        self.lost = 0
        self.problem: str | None = None
        try:
            self._open()
        except OSError as error:
            self._note_failure(error)

    def _open(self) -> None:
        """Continues an existing log in a new segment."""
        try:
            self._current = os.open(self._path, _CREATE, 0o600)
        except FileExistsError:
            there = _list_segments(self._path)
            self._ring = [segment.start for segment in there if segment.path != self._path]
            self.position = max((segment.end for segment in there), default=0)

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            taken = self._write_some(view)
            self.position += taken
            view = view[taken:]

    def _write_some(self, view: memoryview) -> int:
        """Returns how many bytes were stored or counted as lost. After a loss a new segment starts, whose name shows
        the gap."""
        try:
            if self._current < 0 or self.position - self._start >= self._segment_limit:
                self._begin_segment()
            return os.write(self._current, view[: self._segment_limit - (self.position - self._start)])
        except OSError as error:
            self._note_failure(error)
            self.lost += len(view)
            return len(view)

    def _begin_segment(self) -> None:
        self._end_segment()
        if self._directory < 0:
            self._directory = _open_directory(self._path + MORE)
            _touch(self._path)
        while len(self._ring) >= _SEGMENTS - 1:
            oldest = self._ring.pop(0)
            try:
                os.unlink(_name(oldest), dir_fd=self._directory)
            except FileNotFoundError:
                pass
        self._start = self.position
        self._current = os.open(_name(self.position), _CREATE, 0o600, dir_fd=self._directory)
        self._ring.append(self.position)

    def _end_segment(self) -> None:
        if self._current >= 0:
            os.close(self._current)
            self._current = -1

    def _note_failure(self, error: OSError) -> None:
        """Removes an empty segment: on a full disk one per write would rotate the full ones away."""
        self.problem = self.problem or os.strerror(error.errno or 0)
        if self._current >= 0 and self._ring and self.position == self._start:
            try:
                os.unlink(_name(self._ring.pop()), dir_fd=self._directory)
            except OSError:
                pass
        self._end_segment()

    def close(self) -> None:
        self._end_segment()
        if self._directory >= 0:
            os.close(self._directory)
            self._directory = -1


def _open_directory(directory: str) -> int:
    try:
        os.mkdir(directory, 0o700)
    except FileExistsError:
        pass
    return os.open(directory, _FOLDER)


def _touch(path: str) -> None:
    """Wakes readers that watch the first segment, so that they watch the directory from now on."""
    try:
        os.utime(path, follow_symlinks=False)
    except OSError:
        pass


def _name(start: int) -> str:
    return f"{start:0{_DIGITS}d}"


def read(path: str, since: int = 0) -> Iterator[bytes]:
    """Yields what is there now, from byte `since` on. A notice takes the place of missing bytes."""
    return (part for _end, part in parts(path, since))


def parts(path: str, since: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yields the same, each part with the offset of its end."""
    position = since
    while (found := _next(path, position)) is not None:
        yield found
        position = found[0]


def follow(path: str, ended: Callable[[], bool], since: int = 0, *, look_seconds: float = 0.5) -> Iterator[bytes]:
    """Yields the same, and then new output until `ended()` returns True.

    `ended` may read the store, so it is called after `look_seconds` of silence, and at that interval while output
    flows. After it returned True the log is read once more, so that nothing is missed.
    """
    position, over, ask_at = since, False, 0.0
    place, watch = "", None
    try:
        while True:
            if (grows := _where_it_grows(path)) != place or watch is None:
                _close(watch)
                place, watch = grows, _watch(grows)
            while (found := _next(path, position)) is not None:
                position, part = found
                yield part
            if over:
                return
            if time.monotonic() >= ask_at:
                over, ask_at = ended(), time.monotonic() + look_seconds
            if not over and not _wait_for_change(watch, look_seconds):
                ask_at = 0.0
    finally:
        _close(watch)


def _where_it_grows(path: str) -> str:
    """Empty if there is no log yet."""
    if os.path.isdir(path + MORE):
        return path + MORE
    return path if _segment(path, 0) or os.path.isdir(path) else ""


def _watch(place: str) -> DirectoryWatch | None:
    from mam.stores.file_watch import DirectoryWatch, WatchFilter

    try:
        return DirectoryWatch(place, WatchFilter(events=_MODIFY | _TOUCHED | _CREATE_IN, matches=lambda _name: True))
    except OSError:
        return None  # not there yet


def _close(watch: DirectoryWatch | None) -> None:
    if watch is not None:
        watch.close()


def _wait_for_change(watch: DirectoryWatch | None, seconds: float) -> bool:
    """Waits for a write, until the time is up. Returns whether something was written."""
    if watch is not None:
        return watch.wait(seconds)
    time.sleep(seconds)
    return False


def tail_start(path: str, lines: int) -> int:
    """The offset at which the last `lines` lines begin; 0 if there are fewer. Reads backwards, as far as necessary."""
    end = length(path)
    is_last, wanted, position = True, lines, end
    while position > 0:
        start = max(0, position - _CHUNK)
        for offset, part in reversed(list(_parts(path, start, position))):
            if is_last and part.endswith(b"\n"):
                wanted += 1  # the last line has its end
            is_last = False
            if (count := part.count(b"\n")) >= wanted:
                return min(end, offset + nth_break(part, count - wanted) + 1)
            wanted -= count
        position = start
    return 0


def _parts(path: str, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """What is stored between two offsets, with the offset of each part."""
    while start < end and (found := _next(path, start)) is not None:
        yield start, found[1][: end - start]
        start = found[0]


def nth_break(data: bytes, count: int) -> int:
    """The position of the line end that `count` others precede."""
    at = -1
    for _ in range(count + 1):
        at = data.index(b"\n", at + 1)
    return at


def length(path: str) -> int:
    """How many bytes of output there have been, as far as the disk shows."""
    return max((segment.end for segment in _list_segments(path)), default=0)


def pieces(path: str, since: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yields what is there now, each part with its offset, which shows where bytes are missing."""
    position = since
    while (found := _part_after(path, position)) is not None:
        yield found
        position = found[0] + len(found[1])


def _next(path: str, position: int) -> tuple[int, bytes] | None:
    """The new position and the bytes up to it, or the notice in the place of missing ones; None if there is nothing
    yet."""
    found = _part_after(path, position)
    if found is None:
        return None
    start, part = found
    return (start + len(part), part) if start == position else (start, gap_notice(start - position))


def _part_after(path: str, position: int) -> tuple[int, bytes] | None:
    """The next bytes that are stored and their offset; None if there is nothing yet.

    The segments are listed before the read: a segment that has a successor in the list is complete.
    """
    for _ in range(100):  # a segment may be rotated away between the list and the read; then list again
        segments = _list_segments(path)
        claim = next((segment for segment in reversed(segments) if segment.start <= position), None)
        after = next((segment for segment in segments if segment.start > position), None)
        try:
            if claim is not None and (part := _read_part(claim, position)):
                return position, part
        except OSError:
            if after is None:
                return None
        if after is None:
            return None
        if after.size:
            position = after.start
    return None


def _read_part(segment: Segment, position: int) -> bytes:
    descriptor = os.open(segment.path, _READ)
    try:
        return os.pread(descriptor, _CHUNK, position - segment.start)
    finally:
        os.close(descriptor)


def gap_notice(count: int) -> bytes:
    return f"\n[mam: {count} bytes of output were left out here]\n".encode()


def _list_segments(path: str) -> list[Segment]:
    """In order; empty if there is no readable log. Older versions kept all segments in a directory of the log's own
    name."""
    found = [*_segment(path, 0), *_segments(path + MORE), *_segments(path)]
    return sorted(found, key=lambda segment: segment.start)


def _segments(directory: str) -> list[Segment]:
    """Ignores other files, and links."""
    try:
        descriptor = os.open(directory, _FOLDER)
    except OSError:
        return []
    try:
        names = [name for name in os.listdir(descriptor) if len(name) == _DIGITS and name.isascii() and name.isdigit()]
        return [found for name in names for found in _segment(os.path.join(directory, name), int(name))]
    finally:
        os.close(descriptor)


def _segment(path: str, start: int) -> list[Segment]:
    try:
        about = os.lstat(path)
    except OSError:
        return []
    return [Segment(path=path, start=start, size=about.st_size)] if stat.S_ISREG(about.st_mode) else []
