"""A store whose journal is never behind, for tests that look straight after an act."""

from __future__ import annotations

from collections.abc import Iterator

from mam.stores.port import Entry
from mam.stores.postgres.store import PostgresStore

UNSETTLED = "SELECT FROM mam.journal WHERE xact >= pg_snapshot_xmin(pg_current_snapshot()) LIMIT 1"


class SettledStore(PostgresStore):
    """The journal holds back what is younger than the oldest transaction that runs, be it of another program or the
    server's own autovacuum. The suite looks straight after an act, so here whoever looks waits until that one is over.
    """

    def end(self) -> str:
        self._await_others()
        return super().end()

    def entries(self, cursor: str | None) -> Iterator[Entry]:
        self._await_others()
        return super().entries(cursor)

    def _await_others(self) -> None:
        with self._server.connect() as connection:
            while connection.execute(UNSETTLED).fetchall():
                pass
