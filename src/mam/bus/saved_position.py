"""Where `mam subscribe --all` ended, so that the next one goes on there: a small file beside the audit log.

A subscriber may be a reader who cannot write to the store, so the file keeps its position. It is written without a
sync. The job's own history records each event that was printed, so after a crash none of them is printed again.
"""

from __future__ import annotations

import os

from mam.stores.consumer import Consumer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.stores.port import Store

NAME = ".subscribe-all.json"
_SIZE_LIMIT = 64 * 1024


def subscribe_consumer(store: Store, logs_dir: str) -> Consumer:
    return Consumer(store, "subscribe", _PositionFile(os.path.join(logs_dir, NAME)))


class _PositionFile:
    def __init__(self, path: str) -> None:
        self._path = path

    def position(self, consumer: str) -> str | None:  # noqa: ARG002 - the file has one consumer
        try:
            with open(self._path, encoding="utf-8", errors="replace") as file:
                return file.read(_SIZE_LIMIT)
        except OSError:
            return None

    def save_position(self, consumer: str, position: str) -> None:  # noqa: ARG002
        temporary = f"{self._path}.{os.getpid()}.tmp"
        try:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(position)
            os.replace(temporary, self._path)
        except OSError:
            return  # the next one begins a little earlier
