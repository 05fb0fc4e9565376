"""Where the output of an attempt is read: from its log on this host, otherwise from the store."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod

from mam.work import output_log
from mam.work.state_dirs import existing_output_path, work_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mam.registry import Registry
    from mam.stores.outputs import Outputs

LOOK_SECONDS = 1.0
"""A worker on another host sends new output once a second."""


class OutputSource(ABC):
    @abstractmethod
    def exists(self) -> bool:
        """Whether there is any output yet."""

    @abstractmethod
    def parts(self, since: int = 0) -> Iterator[tuple[int, bytes]]:
        """What is there now, from byte `since` on, each part with the offset of its end. A notice takes the place of
        missing bytes."""

    def read(self, since: int = 0) -> Iterator[bytes]:
        """The same without offsets."""
        return (data for _end, data in self.parts(since))

    @abstractmethod
    def follow(self, ended: Callable[[], bool], since: int = 0) -> Iterator[bytes]:
        """The same, and then new output until `ended()` returns True."""

    @abstractmethod
    def tail_start(self, lines: int) -> int:
        """Where the last lines begin."""


class LocalOutput(OutputSource):
    """The log of an attempt that ran, or runs, on this host."""

    def __init__(self, path: str, look_seconds: float = 0.5) -> None:
        """`look_seconds`: how often a follower asks whether the attempt has ended."""
        self._path = path
        self._look_seconds = look_seconds

    def exists(self) -> bool:
        return os.path.exists(self._path)

    def parts(self, since: int = 0) -> Iterator[tuple[int, bytes]]:
        return output_log.parts(self._path, since)

    def follow(self, ended: Callable[[], bool], since: int = 0) -> Iterator[bytes]:
        return output_log.follow(self._path, ended, since, look_seconds=self._look_seconds)

    def tail_start(self, lines: int) -> int:
        return output_log.tail_start(self._path, lines)


class StoredOutput(OutputSource):
    """What a worker copied into the store. If the attempt turns out to run on this host, its log is read instead."""

    def __init__(self, outputs: Outputs, job_id: str, attempt: int, log: str) -> None:
        self._outputs = outputs
        self._job_id = job_id
        self._attempt = attempt
        self._log = log

    def exists(self) -> bool:
        stored = self._outputs.read(self._job_id, self._attempt)
        return os.path.exists(self._log) or next(iter(stored), None) is not None

    def follow(self, ended: Callable[[], bool], since: int = 0) -> Iterator[bytes]:
        over = False
        while not os.path.exists(self._log):
            for end, data in self.parts(since):
                since = end
                yield data
            if over:
                return
            over = ended()
            if not over:
                time.sleep(LOOK_SECONDS)
        yield from output_log.follow(self._log, ended, since)

    def tail_start(self, lines: int) -> int:
        found = list(self._outputs.read(self._job_id, self._attempt))
        wanted = lines + bool(found and found[-1].data.endswith(b"\n"))
        for piece in reversed(found):
            count = piece.data.count(b"\n")
            if count >= wanted:
                return piece.start + output_log.nth_break(piece.data, count - wanted) + 1
            wanted -= count
        return 0

    def parts(self, since: int = 0) -> Iterator[tuple[int, bytes]]:
        for piece in self._outputs.read(self._job_id, self._attempt, since):
            if piece.start > since:
                yield piece.start, output_log.gap_notice(piece.start - since)
            since = piece.end
            yield since, piece.data


def output_of(registry: Registry, job_id: str, attempt: int) -> OutputSource:
    log = local_log(registry, job_id, attempt)
    return LocalOutput(log) if os.path.exists(log) else StoredOutput(registry.store.outputs, job_id, attempt, log)


def local_log(registry: Registry, job_id: str, attempt: int) -> str:
    """The path of the log on this host, whether it exists or not."""
    return existing_output_path(work_directory(registry.store.address), job_id, attempt)
