"""The registry made anew from its record files, when its database is lost, damaged or older than they are."""

from __future__ import annotations

import os

import apsw

from mam.errors import MamError
from mam.frozen import Frozen
from mam.stores.files.lock import registry_lock
from mam.stores.files.making import Made, make_database, put_in_place, write_files
from mam.stores.files.store import DATABASE, STORE, FilesStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.clock import Clock


class Rebuilt(Frozen):
    made: Made
    kept: str | None
    """Where the old database is now."""
    unknown: list[str]
    """What record files do not hold and the old database did not give back."""


def rebuild(directory: str, clock: Clock, wait_seconds: float) -> Rebuilt:
    directory = os.path.realpath(directory)
    home = os.path.join(directory, STORE)
    path = os.path.join(home, DATABASE)
    with registry_lock(directory, wait_seconds):
        old = _read_old(directory, clock, wait_seconds) if os.path.exists(path) else None
        made = make_database(directory, path, clock, wait_seconds, own=True, give=None if old is None else old.give_to)
        kept = put_in_place(home, path)
        write_files(directory, clock, wait_seconds)
    unknown = (
        [] if old is not None else ["archived jobs", "pauses", "generations of sessions", "positions of followers"]
    )
    return Rebuilt(made=made, kept=kept, unknown=unknown)


class _Old:
    """What only the old database holds."""

    def __init__(self, store: FilesStore) -> None:
        self._archive = list(store.archive_contents())
        self._pauses = store.pauses()
        self._generations = store._rows("generations")

    def give_to(self, store: FilesStore) -> None:
        store.take_in(self._archive, archived=True)
        for pause in self._pauses:
            store.pause(pause)
        store._act(lambda: [_announce(store, *row) for row in self._generations])


def _announce(store: FilesStore, agent_id: str, generation_id: str, superseded: str) -> None:
    store._rows("announce", agent_id=agent_id, generation_id=generation_id, superseded=superseded)


def _read_old(directory: str, clock: Clock, wait_seconds: float) -> _Old | None:
    """None when it cannot be read."""
    try:
        store = FilesStore(directory, clock, wait_seconds)
        try:
            return _Old(store)
        finally:
            store.close()
    except (MamError, apsw.Error, ValueError):
        return None
