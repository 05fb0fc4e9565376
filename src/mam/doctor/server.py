"""Check what is between mam and a PostgreSQL server, and for a second store in its database."""

from __future__ import annotations

from mam.doctor.finding import fine, first_few, note
from mam.errors import MamError
from mam.location.stores import POSTGRES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.doctor.context import Context
    from mam.doctor.finding import Finding


def check(context: Context) -> Iterator[Finding]:
    if context.kind != POSTGRES:
        return
    from mam.stores.postgres.news import POLL_SECONDS
    from mam.stores.postgres.store import PostgresStore

    try:
        store = context.store
        if not isinstance(store, PostgresStore):
            return
        found = store.probe()
    except MamError:
        return  # the check of the store reports it
    if found.elsewhere:
        yield note(
            f"the database has another store of mam in its schema {first_few(list(found.elsewhere))}",
            "mam uses only the schema `mam`; jobs in the other one are not listed and not run",
        )
    if not found.is_pooled:
        yield fine("mam is connected to the server itself, and its notifications get through")
    elif found.hears:
        yield fine("mam is connected through a pooler, and the server's notifications get through")
    else:
        yield note(
            "a pooler between mam and the server lets no notifications (LISTEN) through",
            f"a waiting mam asks every {POLL_SECONDS:g} s instead; a pool in session mode is faster",
        )
