"""The kinds of stores of one host, so that each fault is written once and tried on all of them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from mam.stores.files.store import FilesStore, create_files_store
from mam.stores.sqlite.store import SqliteStore, create_sqlite_store
from mam.util.clock import SystemClock
from mam.util.frozen import Frozen
from tests.faults.killing import Seam, at_calls, at_statements, at_writes

if TYPE_CHECKING:
    from mam.stores.port import Store
    from mam.util.clock import Clock, Moment


class StoreKind(Frozen):
    """A kind of store. Its place is the directory that contains all of it. It can be copied while it is not in use."""

    name: str
    within: str
    """The name of the store below its place."""
    database: str
    """The database below its place that the store has or is."""
    scheme: str
    create: Callable[[str], bool]
    opener: Callable[..., Store]
    seams: dict[str, Seam]

    def path(self, place: Path) -> Path:
        return place / self.within

    def address(self, place: Path) -> str:
        return f"{self.scheme}{self.path(place)}"

    def make(self, place: Path) -> None:
        self.create(str(self.path(place)))

    def open(self, place: Path, clock: Clock | None = None) -> Store:
        return self.opener(str(self.path(place)), clock)


STORE_KINDS = {
    store_kind.name: store_kind
    for store_kind in (
        StoreKind(
            name="files", within="jobs", database="jobs/.store/registry.db", scheme="",
            create=create_files_store, opener=FilesStore, seams={"call": at_calls, "write": at_writes},
        ),
        StoreKind(
            name="sqlite", within="jobs.db", database="jobs.db", scheme="sqlite://",
            create=create_sqlite_store, opener=SqliteStore, seams={"statement": at_statements, "write": at_writes},
        ),
    )
}  # fmt: skip


class Boot(SystemClock):
    """The clock of one boot of a machine. mam must notice that a power cut has ended it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def now(self) -> Moment:
        return super().now().replace(boot_id=self._name)


def copied(origin: Path, wreck: Path) -> None:
    """Copies the store into another directory and replaces what was there."""
    shutil.rmtree(wreck, ignore_errors=True)
    shutil.copytree(origin, wreck)


def quick_place() -> str | None:
    """A file system in memory, for faults that end processes and not machines; None takes the usual one."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
