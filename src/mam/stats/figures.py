"""Figures of the jobs that ended in a span of time: all together, and by label, agent or day."""

from __future__ import annotations

from datetime import UTC, datetime

from mam.stats.tally import DAY, Tally
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    import apsw

MOST_GROUPS = 1000
_COLUMNS = (
    "status", "label", "agent", "ended", "pending", "running", "attempts", "losses", "retries", "tokens", "cost",
)  # fmt: skip


class Figures(Frozen):
    """Times are seconds, from 256 on rounded down by less than a hundredth; None where there is nothing to measure."""

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
        """The share of completed jobs; cancelled jobs do not count."""
        tried = self.completed + self.error
        return self.completed / tried if tried else None

    def to_json(self) -> dict[str, Any]:
        return {**self.as_dict(), "success": self.success}


class EndedJobs:
    """The jobs that ended since a second: the kept sums of whole days, and each job of the day before them."""

    def __init__(self, database: apsw.Connection, since: int) -> None:
        self._database = database
        self._since = since
        self._midnight = -(-since // DAY) * DAY
        self._of_first_day = list(jobs(database, "ended >= ? AND ended < ?", since, self._midnight))
        self._all = self._tallies("all")

    def total(self) -> Figures:
        whole = Tally()
        for tally in self._all.values():
            whole.merge(tally)
        return Figures(name="all", **whole.figures())

    def grouped(self, by: str) -> list[Figures]:
        """By label, agent or day."""
        found = self._all if by == "day" else self._tallies(by)
        most = sorted(found, key=lambda name: -found[name].counts["ended"])[:MOST_GROUPS]
        return [Figures(name=name, **found[name].figures()) for name in (sorted(most) if by == "day" else most)]

    def _tallies(self, kind: str) -> dict[str, Tally]:
        """Of each label or agent; those of all by day."""
        found: dict[str, Tally] = {}
        for job in self._of_first_day:
            name = _day(self._since) if kind == "all" else str(job[kind])
            found.setdefault(name, Tally()).add(job)
        words = "SELECT day, name, tally FROM summary WHERE kind = ? AND day >= ?"
        for day, name, text in self._database.execute(words, (kind, self._midnight // DAY)):
            found.setdefault(_day(int(day) * DAY) if kind == "all" else str(name), Tally()).merge(Tally(str(text)))
        return {name: tally for name, tally in found.items() if tally.counts.get("ended")}


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
    return [_day(at) for at in range(int(begin), int(end) + 1, DAY)]


def jobs(database: apsw.Connection, condition: str, *values: int | str) -> Iterator[dict[str, Any]]:
    """What a tally needs of the rows of the table `job`."""
    for row in database.execute(f"SELECT {', '.join(_COLUMNS)} FROM job WHERE {condition}", values):  # noqa: S608
        yield dict(zip(_COLUMNS, row, strict=True))


def _rows(database: apsw.Connection, words: str, *values: int) -> list[tuple[Any, ...]]:
    return list(database.execute(words, values).fetchall())


def _day(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%d")
