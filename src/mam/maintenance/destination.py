"""The destination of a migration: an empty registry that no other process can open until it is complete."""

from __future__ import annotations

import os

from mam.location.ownership import check_path_ownership
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.location.stores import StoreLocation
    from mam.stores.port import Store


FILLING = ".filling"
"""Behind the name of a store until it is whole."""


class Destination(Frozen):
    store: Store
    finish: Callable[[], None]
    """Lets other processes open it."""


def begin_import(located: StoreLocation) -> Destination:
    from mam.location.stores import POSTGRES, SQLITE_KIND, check_ownership, require_packages

    check_ownership(located)
    if located.kind != POSTGRES:
        check_path_ownership(os.path.realpath(located.path) + FILLING)  # what it holds would be in the new store
    require_packages(located)
    if located.kind == SQLITE_KIND:
        from mam.stores.sqlite import import_store as sqlite

        database = sqlite.begin_import(located.path)
        return Destination(store=database, finish=lambda: sqlite.finish_import(database))
    if located.kind == POSTGRES:
        from mam.stores.postgres import import_store as postgres

        server = postgres.begin_import(located.address)
        return Destination(store=server, finish=lambda: postgres.finish_import(server))
    from mam.stores.files import import_store as files

    directory = files.begin_import(located.path)
    return Destination(store=directory, finish=lambda: files.finish_import(directory))
