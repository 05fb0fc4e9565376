"""How much of the database an act writes, so that it does not creep up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import apsw

if TYPE_CHECKING:
    from mam.registry import Registry
    from tests.sqlite.conftest import Place

JOBS = 200
PAGES = 3
"""The job, the journal, and the index of lines."""


class Log:
    """The pages that each commit of a store has added to the write-ahead log."""

    def __init__(self, registry: Registry) -> None:
        self._database: apsw.Connection = registry.store._connection()  # type: ignore[attr-defined]
        self._ends: list[int] = [0]
        self._database.wal_autocheckpoint(0)
        self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._database.set_wal_hook(self._committed)

    def _committed(self, _database: apsw.Connection, _name: str, pages: int) -> int:
        self._ends.append(pages)
        return apsw.SQLITE_OK

    def pages(self) -> list[int]:
        return [end - before for before, end in zip(self._ends, self._ends[1:], strict=False)]


def test_most_acts_write_three_pages_and_no_row_outgrows_its_own(place: Place) -> None:
    """A job that outgrows its page when it is claimed makes that six and more, for every seventh."""
    registry = place.open()
    for _ in range(JOBS):
        registry.register(prompt="x" * 400, agent="shell", label="many")
    log = Log(registry)
    for _ in range(JOBS):
        job = registry.pick("many", owner="me")
        assert job is not None
        registry.complete(job.job_id, attempt=job.attempt)

    written = log.pages()
    assert len(written) == 2 * JOBS
    assert sum(pages == PAGES for pages in written) > 0.8 * len(written)
    assert sum(pages > PAGES + 2 for pages in written) < 0.05 * len(written), "a new page of the journal makes it five"
