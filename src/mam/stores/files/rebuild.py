"""`mam rebuild`: builds the database from the record files when it is lost, damaged or older than they are."""

from __future__ import annotations

import os

import apsw

from mam.errors import MamError
from mam.stores.common import chunks
from mam.stores.files.create import BuiltDatabase, build_database
from mam.stores.files.lock import registry_lock
from mam.stores.files.store import DATABASE, STORE, FilesStore
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.util.clock import Clock

ALWAYS_LOST = ["the journal before now", "positions of followers"]
ONLY_THERE = ["archived jobs", "pauses", "generations of sessions"]


class Rebuilt(Frozen):
    made: BuiltDatabase
    kept: str | None
    """Where the old database is now."""
    unknown: list[str]
    """What neither the record files nor the old database could provide."""
    without_file: list[str]
    """Jobs of the old database that have no record file; they are only in the old database now."""


def rebuild(directory: str, clock: Clock, wait_seconds: float) -> Rebuilt:
    directory = os.path.realpath(directory)
    path = os.path.join(directory, STORE, DATABASE)
    with registry_lock(directory, wait_seconds):
        old = _read_old(directory, clock, wait_seconds) if os.path.exists(path) else None
        add_rest = None if old is None else old.give_to
        made = build_database(directory, path, clock, wait_seconds, own=True, add_rest=add_rest)
        store = FilesStore(directory, clock, wait_seconds)  # writes the record files
        without_file = [] if old is None else sorted(old.ids - set(store.versions(list(old.ids))))
        store.close()
    unknown = ALWAYS_LOST + ([] if old is not None else ONLY_THERE)
    return Rebuilt(made=made, kept=made.kept, unknown=unknown, without_file=without_file)


class _Old:
    """The data that only the old database holds."""

    def __init__(self, store: FilesStore) -> None:
        self._archive = list(store.archive_contents())
        self._pauses = store.pauses()
        self._generations = store._rows("generations")
        self.ids = {row[0] for row in store._rows("newest ids", limit=-1)}
        store._run("PRAGMA wal_checkpoint(TRUNCATE)")  # so that the old database is complete without its log

    def give_to(self, store: FilesStore) -> None:
        for chunk in chunks(self._archive):
            store.import_jobs(chunk, archived=True)
        for pause in self._pauses:
            store.pause(pause)
        store._in_transaction(self._announce_all, store)

    def _announce_all(self, store: FilesStore) -> None:
        for agent_id, generation_id, superseded in self._generations:
            store._rows("save generation", agent_id=agent_id, generation_id=generation_id, superseded=superseded)


def _read_old(directory: str, clock: Clock, wait_seconds: float) -> _Old | None:
    """None when the old database cannot be read."""
    try:
        store = FilesStore(directory, clock, wait_seconds)
        try:
            return _Old(store)
        finally:
            store.close()
    except (MamError, apsw.Error, ValueError):
        return None
