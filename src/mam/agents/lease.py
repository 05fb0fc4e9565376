"""The lease of a session's record: until when the record is valid.

Until the next reboot the boot clock decides, so that a jump of the wall clock neither revives nor ends a session. After
a reboot `lease_expires_at` decides, which every program can read.
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
"""A hundred years, which the other system writes for an unlimited lease."""


def remaining_ms(record: AgentRecord, moment: Moment) -> int:
    """Milliseconds until the lease expires; negative if it has. A record without a lease has expired."""
    if record.liveness is None:
        return -1
    expires_at, boot = record.liveness.lease_expires_at, record.mam.lease_boot
    # If another program changed expires_at, the boot time beside it no longer belongs to it.
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
    """The length of the lease; a refresh takes the same length."""
    if record.liveness is None:
        return DEFAULT_SECONDS
    return (parse_time(record.liveness.lease_expires_at) - parse_time(record.liveness.published_at)) / 1000


def with_lease(record: AgentRecord, seconds: float, moment: Moment) -> AgentRecord:
    """The record with a new lease of this length."""
    length = max(1, round(min(seconds, LONGEST_SECONDS) * 1000))
    expires_at = iso_milli(moment.wall_ms + length)
    boot = None
    if moment.boot_id:
        boot = {"boot_id": moment.boot_id, "boot_ms": moment.boot_ms + length, "expires_at": expires_at}
    return record.replace(
        liveness=Liveness(published_at=iso_milli(moment.wall_ms), lease_expires_at=expires_at),
        mam=record.mam.replace(lease_boot=boot),
    )
