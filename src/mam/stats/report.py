"""The figures of `mam stats`, for every door."""

from __future__ import annotations

from mam.errors import BadInput
from mam.stats import figures
from mam.stats.cache import StatsCache
from mam.util.clock import parse_time
from mam.util.frozen import Frozen
from mam.util.human_time import parse_since

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mam.jobs.record import Json
    from mam.stats.figures import Figures
    from mam.stores.port import Store

KINDS = ("label", "agent", "day")
PERIOD = "30d"


class Report(Frozen):
    since: str
    registered: int
    open: dict[str, int]
    total: Figures
    groups: dict[str, list[Figures]]
    hours: float | None
    """From the first end of the period until now; None if nothing ended."""

    def to_json(self, address: str) -> Json:
        return {
            "store": address, "since": self.since, "registered": self.registered, "open": self.open,
            "ended_per_hour": None if self.hours is None else round(self.total.ended / max(self.hours, 1), 3),
            "total": self.total.to_json(),
            "by": {kind: [one.to_json() for one in found] for kind, found in self.groups.items()},
        }  # fmt: skip


def make_report(store: Store, since: str, kinds: Sequence[str], advance: Callable[[int], None]) -> Report:
    """`advance` learns how many entries of the journal were read: the first call reads all of them."""
    for kind in kinds:
        if kind not in KINDS:
            raise BadInput(why=f"{kind[:40]!r} is not one of {', '.join(KINDS)}")
    now = store.clock.now().wall_ms
    begin = parse_time(parse_since(since, now)) // 1000
    with StatsCache(store, advance) as cache:
        database = cache.database
        ended = figures.EndedJobs(database, begin)
        first = figures.first_end(database, begin)
        return Report(
            since=parse_since(since, now), registered=figures.registered(database, begin),
            open=figures.open_jobs(database), total=ended.total(), groups={kind: ended.grouped(kind) for kind in kinds},
            hours=None if first is None else max(now // 1000 - first, 1) / 3600,
        )  # fmt: skip
