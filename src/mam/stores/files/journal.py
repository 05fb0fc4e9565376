"""The journal: an act has happened when its frame is on the disk, and not before.

`journal.log` is the segment being written; full ones are renamed to `journal-<first entry>.log`. Everything else in
the store (records, index, event logs) follows from here and is caught up by the next holder of the lock.
"""

from __future__ import annotations

import os
import sys
from io import BytesIO

from mam.errors import StoreDamaged, StoreUnavailable
from mam.frozen import Frozen
from mam.stores.beside import sync_directory
from mam.stores.files.frames import frame, unframe
from mam.stores.files.mark import IN_WORK, Mark, MarkFile
from mam.writing import close_quietly, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, BinaryIO

    from mam.stores.files.tail import Tail

ACTIVE = "journal.log"
SEGMENT_LIMIT = 16 * 1024 * 1024
QUARANTINE = "quarantine"
FORMAT = 1


class Place(Frozen):
    """A byte in the journal: the segment that begins with entry `first`, and the offset in it."""

    first: int
    offset: int

    def __str__(self) -> str:
        return f"{self.first}:{self.offset}"


def parse_place(cursor: str) -> Place:
    first, _, offset = cursor.partition(":")
    return Place.of({"first": int(first), "offset": int(offset)})


class Journal:
    """Open for the holder of the registry's lock; reading up to a known end needs no lock."""

    def __init__(self, directory: str, new_id: Callable[[], str]) -> None:
        self._directory = directory
        self._active = os.path.join(directory, ACTIVE)
        self._mark = MarkFile(directory)
        self._followed: Tail | None = None
        self._foreseen: tuple[Place, bytes, list[tuple[list[dict[str, Any]], Place]]] | None = None
        self._descriptor = -1
        self._descriptor = self._open(new_id)

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            close_quietly(descriptor)

    __del__ = close  # a store that is simply dropped keeps nothing open

    def refresh(self, new_id: Callable[[], str]) -> Place:
        """The end. Another holder may have closed the segment that this descriptor is open on."""
        try:
            there = os.stat(self._active, follow_symlinks=False)
        except FileNotFoundError:
            there = None
        mine = os.fstat(self._descriptor) if self._descriptor >= 0 else None
        if there is None or mine is None or (there.st_ino, there.st_dev) != (mine.st_ino, mine.st_dev):
            self._take_up(self._open(new_id))
            return self.end()
        return Place.of({"first": self.first, "offset": there.st_size})

    def end(self) -> Place:
        return Place(first=self.first, offset=os.fstat(self._descriptor).st_size)

    def append(self, entries: list[dict[str, Any]], meanwhile: Callable[[], None] | None = None) -> Place:
        """The commit. When it returns, the entries are durable; when it raises, they are not there. What has to be
        done before it, and may fail, is done `meanwhile`: when the disk has been given its work."""
        start, act = self.end().offset, frame(entries)
        if start > SEGMENT_LIMIT:
            self._rotate(int(entries[0]["number"]))
            start = self.end().offset
        place = Place.of({"first": self.first, "offset": start + len(act)})
        tell = self._mark.prepared(_mark_at(place, IN_WORK))
        try:
            write_all(self._descriptor, act)
            if meanwhile is not None:
                _start_writing(self._descriptor, start, len(act))
                self._do(meanwhile, start)
            os.fdatasync(self._descriptor)
        except BaseException as error:
            self._take_back(start)
            if isinstance(error, OSError):
                raise StoreUnavailable(store=self._active, problem=error.strerror) from None
            raise
        tell()
        return place

    def _do(self, meanwhile: Callable[[], None], start: int) -> None:
        try:
            meanwhile()
        except BaseException:
            # The disk may have the frame already: what has been refused must not come back after a power cut.
            os.ftruncate(self._descriptor, start)
            os.fdatasync(self._descriptor)
            raise

    def mark(self, place: Place, directory_ns: int) -> None:
        """For those who follow; `directory_ns` is how the act has left the directory, once it is carried out."""
        self._mark.prepared(_mark_at(place, directory_ns))()

    def marked(self) -> Mark | None:
        """The end as those see it who do not hold the lock; None when only the lock can tell."""
        mark = self._tail_followed().mark()
        return mark if mark is not None and mark.first == self.first else None

    def _tail_followed(self) -> Tail:
        if self._followed is None:
            from mam.stores.files.tail import Tail  # only for those who follow

            self._followed = Tail(self._directory, ACTIVE)
        return self._followed

    def read(
        self, place: Place, end: Place, damaged: Callable[[StoreDamaged], None]
    ) -> Iterator[tuple[list[dict[str, Any]], Place]]:
        """Whole frames between two places, each with the place behind it. `damaged` is told of any that is not
        whole, and either raises what it is given or lets the reading go on behind it."""
        is_near = place.first == end.first
        news = self._tail_followed().read(end.first, place.offset, end.offset) if is_near else None
        if news is not None:
            foreseen = self._foreseen
            if foreseen is not None and (place, news) == foreseen[:2]:
                yield from foreseen[2]
            else:
                yield from self._frames(BytesIO(news), place.first, ACTIVE, place.offset, None, damaged)
            return
        segments = [(self.first, ACTIVE)] if place.first == end.first == self.first else self.segments()
        for first, name in segments:
            if first < place.first:
                continue
            begin = place.offset if first == place.first else 0
            stop = end.offset if first == end.first else None
            yield from self._read_segment(first, name, begin, stop, damaged)
            if first == end.first:
                return

    def foreseen(self, place: Place) -> list[tuple[list[dict[str, Any]], Place]]:
        """Whole frames behind a place that need not be durable yet. `read` gives them again once they are, if they are
        still the same bytes then: a writer whose sync fails takes its frame back."""
        news = self._tail_followed().beyond(place.first, place.offset)
        if not news:
            return []
        try:
            found = list(self._frames(BytesIO(news), place.first, ACTIVE, place.offset, None, _refuse))
        except StoreDamaged:
            return []  # half written; whoever reads it for good tells of it if it stays so
        self._foreseen = (place, news, found)
        return found

    def segments(self) -> list[tuple[int, str]]:
        """(first entry, file name) of every segment, oldest first."""
        return [(int(name[8:-4]), name) for name in self._closed()] + [(self.first, ACTIVE)]

    def _closed(self) -> list[str]:
        return sorted(name for name in os.listdir(self._directory) if _is_segment(name))

    def cut_torn_tail(self, place: Place) -> None:
        """An act killed in the middle of its append was never acknowledged: its bytes are put aside.

        Anything whole behind the damage means that acknowledged frames were hurt, which nobody may paper over.
        """
        tail = self._tail(place.offset)
        if any(unframe(line) is not None for line in tail.splitlines(keepends=True)):
            raise StoreDamaged(file=self._active, offset=place.offset, problem="a frame is broken and others follow it")
        self._cut(place.offset, tail)

    def cut_unfinished_line(self) -> None:
        """A frame is written with its newline: what has none at the end was never acknowledged, and is no damage."""
        content = self._tail(0)
        whole = content.rfind(b"\n") + 1
        self._cut(whole, content[whole:])

    def go_on_after_loss(self, next_entry: int) -> None:
        """Somebody has cut acknowledged frames off. What is left of the last one is put aside; a new segment begins.

        Whoever had read further than this one now reaches goes on there, and misses nothing that is still to come.
        """
        whole = 0
        for line in self._tail(0).splitlines(keepends=True):
            if unframe(line) is None:
                break
            whole += len(line)
        self._cut(whole, self._tail(whole))
        self._rotate(next_entry)

    def _tail(self, offset: int) -> bytes:
        size = os.fstat(self._descriptor).st_size
        return os.pread(self._descriptor, max(0, size - offset), offset)

    def _cut(self, offset: int, tail: bytes) -> None:
        if tail:
            self._put_aside(f"journal-{self.first}-{offset}.torn", tail)
            os.ftruncate(self._descriptor, offset)
            os.fdatasync(self._descriptor)

    def _put_aside(self, name: str, content: bytes) -> None:
        """Nothing is thrown away: somebody may want to know what was there."""
        if not content:
            return
        aside = self._path(QUARANTINE)
        os.makedirs(aside, mode=0o700, exist_ok=True)
        name = os.path.join(aside, name)
        descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            write_all(descriptor, content)
        finally:
            os.close(descriptor)

    def _read_segment(
        self, first: int, name: str, begin: int, stop: int | None, damaged: Callable[[StoreDamaged], None]
    ) -> Iterator[tuple[list[dict[str, Any]], Place]]:
        with self._segment(first, name) as file:
            file.seek(begin)
            yield from self._frames(file, first, name, begin, stop, damaged)

    def _frames(
        self,
        file: BinaryIO,
        first: int,
        name: str,
        offset: int,
        stop: int | None,
        damaged: Callable[[StoreDamaged], None],
    ) -> Iterator[tuple[list[dict[str, Any]], Place]]:
        while (stop is None or offset < stop) and (line := file.readline()):
            payload = unframe(line)
            if payload is None:
                damaged(StoreDamaged(file=self._path(name), offset=offset, problem="a frame is not whole"))
            offset += len(line)
            if isinstance(payload, list):
                yield payload, Place.of({"first": first, "offset": offset})

    def _segment(self, first: int, name: str) -> BinaryIO:
        """The segment that begins so. Another process may have closed it since its name was read."""
        file = open(self._path(name), "rb")  # noqa: SIM115 - the caller closes it
        if name != ACTIVE:
            return file
        header = unframe(file.readline())
        if isinstance(header, dict) and header["first"] != first:
            file.close()
            return open(self._path(_segment_name(first)), "rb")
        return file

    def _open(self, new_id: Callable[[], str]) -> int:
        flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            descriptor = os.open(self._active, flags)
        except FileNotFoundError:
            return self._begin(new_id(), 1)
        header = unframe(os.pread(descriptor, 512, 0).partition(b"\n")[0] + b"\n")
        if not isinstance(header, dict):
            return self._begin_again(descriptor, new_id())
        if header["format"] > FORMAT:
            os.close(descriptor)
            raise StoreUnavailable(store=self._active, problem="was written by a newer mam")
        self.journal_id, self.first = str(header["journal"]), int(header["first"])
        return descriptor

    def _take_up(self, descriptor: int) -> None:
        """The old descriptor goes only when there is a new one."""
        self.close()
        self._descriptor = descriptor

    def _begin_again(self, descriptor: int, new_id: str) -> int:
        """A segment without a whole header: its maker was killed before any act could be in it, or it was damaged."""
        size = os.fstat(descriptor).st_size
        content = os.pread(descriptor, size, 0)
        os.close(descriptor)
        if content.count(b"\n") > 1:
            raise StoreDamaged(file=self._active, offset=0, problem="its first line is not whole")
        self._put_aside("journal-headless.torn", content)
        return self._begin(new_id, 1)

    def _begin(self, new_id: str, first: int) -> int:
        """A segment appears under its name only with its header, so nobody meets half of one."""
        closed = self._closed()
        if closed and first == 1:
            journal_id, first = self._after_last_segment(closed[-1])
        else:
            journal_id = new_id
        fresh = self._path(".journal.new")
        descriptor = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            write_all(descriptor, frame({"journal": journal_id, "first": first, "format": FORMAT}))
            os.fsync(descriptor)
            os.rename(fresh, self._active)
            sync_directory(self._directory)
        except BaseException:
            os.close(descriptor)
            raise
        self.journal_id, self.first = journal_id, first
        return descriptor

    def _after_last_segment(self, name: str) -> tuple[str, int]:
        """Killed between closing one segment and beginning the next: go on where the closed one ended."""
        journal_id, number = None, int(name[8:-4])
        with open(self._path(name), "rb") as file:
            for line in file:
                payload = unframe(line)
                if isinstance(payload, dict):
                    journal_id = str(payload["journal"])
                elif isinstance(payload, list):
                    number = int(payload[-1]["number"]) + 1
        if journal_id is None:
            raise StoreDamaged(file=self._path(name), offset=0, problem="its first line is not whole")
        return journal_id, number

    def _rotate(self, next_entry: int) -> None:
        os.rename(self._active, self._path(_segment_name(self.first)))
        self._take_up(self._begin(self.journal_id, next_entry))

    def _take_back(self, start: int) -> None:
        """After a failed write or sync the act is over: its bytes go, and this descriptor is not trusted again."""
        try:
            os.ftruncate(self._descriptor, start)
        except OSError:
            pass  # the torn tail stays for the next holder to put aside
        self.close()

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)


def _start_writing(descriptor: int, begin: int, length: int) -> None:
    """The advice that these bytes will not be read soon makes Linux hand them to the disk at once."""
    if sys.platform == "linux":
        os.posix_fadvise(descriptor, begin, length, os.POSIX_FADV_DONTNEED)


def _mark_at(place: Place, directory_ns: int) -> Mark:
    return Mark.of({"first": place.first, "offset": place.offset, "directory_ns": directory_ns})


def _refuse(damage: StoreDamaged) -> None:
    raise damage


def _segment_name(first: int) -> str:
    return f"journal-{first:016d}.log"


def _is_segment(name: str) -> bool:
    return len(name) == 28 and name.startswith("journal-") and name.endswith(".log") and name[8:-4].isdigit()
