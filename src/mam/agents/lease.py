"""Until when a record is believed.

While the machine has not been restarted, the clock that counts from boot decides, so that no jump of the wall clock
revives a session or takes one away; else it is `lease_expires_at`, which everybody can read.
"""

from __future__ import annotations

from mam.agents.record import Liveness
from mam.util.clock import iso_milli, parse_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.agents.record import AgentRecord
    from mam.util.clock import Moment

DEFAULT_SECONDS = 24 * 3600.0
GRACE_SECONDS = 300.0
LONGEST_SECONDS = 36_500 * 86_400.0
"""A hundred years: what the other system writes for `for ever`."""


def remaining_ms(record: AgentRecord, moment: Moment) -> int:
    """What is left of the lease; below zero it is over. A record without a session has had its time."""
    if record.liveness is None:
        return -1
    expires_at, boot = record.liveness.lease_expires_at, record.mam.lease_boot
    # Whoever changed expires_at by hand, or by another program, knows nothing of the clock beside it.
    if boot is not None and boot.get("expires_at") == expires_at and boot.get("boot_id") == moment.boot_id != "":
        boot_ms = boot.get("boot_ms")
        if type(boot_ms) is int:
            return boot_ms - moment.boot_ms
    return parse_time(expires_at) - moment.wall_ms


def is_fresh(record: AgentRecord, moment: Moment) -> bool:
    return record.live and remaining_ms(record, moment) >= 0


def is_removable(record: AgentRecord, moment: Moment, grace_seconds: float) -> bool:
    return record.live and remaining_ms(record, moment) + round(grace_seconds * 1000) < 0


def length_seconds(record: AgentRecord) -> float:
    """For how long the lease was taken; a refresh takes as much again."""
    if record.liveness is None:
        return DEFAULT_SECONDS
    return (parse_time(record.liveness.lease_expires_at) - parse_time(record.liveness.published_at)) / 1000


def with_lease(record: AgentRecord, seconds: float, moment: Moment) -> AgentRecord:
    """The record as it is published now, for so long."""
    length = max(1, round(min(seconds, LONGEST_SECONDS) * 1000))
    expires_at = iso_milli(moment.wall_ms + length)
    boot = None
    if moment.boot_id:
        boot = {"boot_id": moment.boot_id, "boot_ms": moment.boot_ms + length, "expires_at": expires_at}
    return record.replace(
        liveness=Liveness(published_at=iso_milli(moment.wall_ms), lease_expires_at=expires_at),
        mam=record.mam.replace(lease_boot=boot),
    )
