"""Check the clock against the records and against the database server."""

from __future__ import annotations

from mam.doctor.finding import fine, note, wrong
from mam.location.stores import POSTGRES
from mam.util.clock import SystemClock, boot_id, parse_time
from mam.util.human_time import format_age

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.doctor.context import Context
    from mam.doctor.finding import Finding

TOLERATED_MS = 5_000
BEFORE_MAM = parse_time("2025-01-01T00:00:00Z")
SET_CLOCK = "timedatectl set-ntp true"


def check(context: Context) -> Iterator[Finding]:
    now = SystemClock().now().wall_ms
    problems = list(_problems(context, now))
    yield from problems
    if not boot_id():
        yield note("this system has no boot id", "mam decides by the wall clock whether a lease has expired")
    if not problems:
        yield fine(_sound(context))


def _sound(context: Context) -> str:
    """Names only what was checked."""
    if context.try_open() is None:
        return "the year of the clock is plausible; no store was opened to compare it with"
    return "the clock is after every record" + (" and as the server's" if context.kind == POSTGRES else "")


def _problems(context: Context, now: int) -> Iterator[Finding]:
    if now < BEFORE_MAM:
        yield wrong("the clock shows a year before mam existed", "times in records will be wrong", SET_CLOCK)
    store = context.try_open()
    if store is None:
        return
    if context.kind == POSTGRES:
        ahead = now - store.clock.now().wall_ms
        if abs(ahead) > TOLERATED_MS:
            which = "ahead of" if ahead > 0 else "behind"
            yield wrong(
                f"the clock is {abs(ahead) / 1000:.0f} s {which} the database server's",
                "times on this host differ from the server's decisions about leases",
                SET_CLOCK,
            )
    survey = context.survey()
    latest = survey.latest_ms if survey is not None else None
    if latest is not None and latest > now + TOLERATED_MS:
        yield wrong(
            f"the latest record is from {format_age(latest - now)} in the future",
            "a clock was set back; after a restart, leases last that much longer",
            SET_CLOCK,
        )
