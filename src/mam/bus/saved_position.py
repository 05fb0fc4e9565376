"""The position of `mam subscribe --all`, in a small file beside the audit log.

A subscriber may have no right to write to the store, so a file holds its position. The file is not synced. The audit
log records each printed event, so no event is printed again after a crash.
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
            return  # the next subscriber starts a little earlier
