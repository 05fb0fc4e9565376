"""Figures of the jobs that ended in a span of time: all together, and by label, agent or day."""

from __future__ import annotations

from datetime import UTC, datetime

from mam.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import apsw

GROUPS = {"label": "label", "agent": "agent", "day": "date(ended, 'unixepoch')"}
MOST_GROUPS = 1000


class Figures(Frozen):
    """Times are seconds; None where there is nothing to measure."""

    name: str
    ended: int
    completed: int
    error: int
    cancelled: int
    losses: int
    retries: int
    wait_median: float | None
    """Pending until claimed, all tries of a job together."""
    wait_p95: float | None
    run_median: float | None
    run_p95: float | None
    tokens: int
    cost: float

    @property
    def success(self) -> float | None:
        """Of those that ended by themselves; who was called off did not fail."""
        tried = self.completed + self.error
        return self.completed / tried if tried else None

    def to_json(self) -> dict[str, Any]:
        return {**self.as_dict(), "success": self.success}


def total(database: apsw.Connection, since: int) -> Figures:
    return _grouped(database, since, "'all'")[0] if _any(database, since) else _nothing()


def grouped(database: apsw.Connection, since: int, by: str) -> list[Figures]:
    found = _grouped(database, since, GROUPS[by])
    return sorted(found, key=lambda one: one.name) if by == "day" else sorted(found, key=lambda one: -one.ended)


def registered(database: apsw.Connection, since: int) -> int:
    return int(_rows(database, "SELECT count(*) FROM job WHERE registered >= ?", since)[0][0])


def open_jobs(database: apsw.Connection) -> dict[str, int]:
    return dict(_rows(database, "SELECT status, count(*) FROM job WHERE ended IS NULL GROUP BY status"))


def first_end(database: apsw.Connection, since: int) -> int | None:
    found = _rows(database, "SELECT min(ended) FROM job WHERE ended >= ?", since)[0][0]
    return None if found is None else int(found)


def days_between(first: str, last: str) -> list[str]:
    """Every day from the first to the last, so that a day on which nothing happened shows as such."""
    begin, end = (datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp() for day in (first, last))
    return [datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d") for at in range(int(begin), int(end) + 1, 86_400)]


def _rows(database: apsw.Connection, words: str, *values: int) -> list[tuple[Any, ...]]:
    return list(database.execute(words, values).fetchall())


def _any(database: apsw.Connection, since: int) -> bool:
    return bool(_rows(database, "SELECT 1 FROM job WHERE ended >= ? LIMIT 1", since))


def _nothing() -> Figures:
    return Figures(
        name="all", ended=0, completed=0, error=0, cancelled=0, losses=0, retries=0, wait_median=None, wait_p95=None,
        run_median=None, run_p95=None, tokens=0, cost=0.0,
    )  # fmt: skip


def _grouped(database: apsw.Connection, since: int, key: str) -> list[Figures]:
    rows = _rows(
        database,
        f"SELECT {key} AS name, count(*), sum(status = 'completed'), sum(status = 'error'),"  # noqa: S608 - fixed words
        " sum(status = 'cancelled'), sum(losses), sum(retries), sum(tokens), sum(cost)"
        f" FROM job WHERE ended >= ? GROUP BY name ORDER BY 2 DESC LIMIT {MOST_GROUPS}",
        since,
    )
    waits, runs = _quantiles(database, since, key, "pending"), _quantiles(database, since, key, "running")
    return [
        Figures(
            name=str(row[0]), ended=row[1], completed=row[2], error=row[3], cancelled=row[4], losses=row[5],
            retries=row[6], tokens=row[7], cost=round(row[8], 6), wait_median=waits.get(row[0], (None, None))[0],
            wait_p95=waits.get(row[0], (None, None))[1], run_median=runs.get(row[0], (None, None))[0],
            run_p95=runs.get(row[0], (None, None))[1],
        )
        for row in rows
    ]  # fmt: skip


def _quantiles(
    database: apsw.Connection, since: int, key: str, column: str
) -> dict[Any, tuple[float | None, float | None]]:
    """Median and 95th percentile (nearest rank) of those that were claimed at least once. Equal times are counted and
    not sorted one by one: a million jobs have a few thousand."""
    rows = _rows(
        database,
        f"WITH counted AS (SELECT {key} AS name, {column} AS seconds, count(*) AS jobs"  # noqa: S608 - fixed words
        " FROM job WHERE ended >= ? AND attempts > 0 GROUP BY name, seconds),"
        " ranked AS (SELECT name, seconds, sum(jobs) OVER (PARTITION BY name ORDER BY seconds) AS rank,"
        " sum(jobs) OVER (PARTITION BY name) AS number FROM counted)"
        " SELECT name, min(CASE WHEN rank >= (number + 1) / 2 THEN seconds END),"
        " min(CASE WHEN rank >= (number * 95 + 99) / 100 THEN seconds END) FROM ranked GROUP BY name",
        since,
    )
    return {row[0]: (row[1], row[2]) for row in rows}
