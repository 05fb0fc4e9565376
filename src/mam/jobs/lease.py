"""Leases: a claim is valid until its lease expires."""

from __future__ import annotations

from mam.util.clock import Moment, iso_milli, parse_time
from mam.util.frozen import Frozen, allocate, set_fields

LOCAL_SECONDS, NETWORK_SECONDS = 60.0, 180.0
"""The lease that a worker takes on a store of this host, and on one behind a network: the longer covers a failover."""

_RENEWAL_SECONDS = 20.0

UNLIMITED_SECONDS = 24 * 3600
"""The lease of a `pick` when the job has no timeout: no process renews the claim of a one-shot command."""


class Lease(Frozen):
    """Expiry on two clocks: the boot clock decides during the same boot, otherwise the wall clock does."""

    expires_at: str
    seconds: float = 0
    """Its length; a renewal takes the same length."""
    boot_id: str = ""
    boot_ms: int = 0

    @property
    def wall_ms(self) -> int:
        return parse_time(self.expires_at)

    def left_ms(self, moment: Moment) -> int:
        if self.boot_id and self.boot_id == moment.boot_id:
            return self.boot_ms - moment.boot_ms
        return self.wall_ms - moment.wall_ms

    def expired(self, moment: Moment) -> bool:
        return self.left_ms(moment) <= 0


def new_lease(seconds: float, moment: Moment) -> Lease:
    length = round(seconds * 1000)
    lease = allocate(Lease)
    set_fields(
        lease,
        {
            "expires_at": iso_milli(moment.wall_ms + length),
            "seconds": seconds,
            "boot_id": moment.boot_id,
            "boot_ms": moment.boot_ms + length if moment.boot_id else 0,
        },
    )
    return lease


def renewal_seconds(lease_seconds: float) -> float:
    """How often a worker renews a lease."""
    return min(_RENEWAL_SECONDS, lease_seconds / 3)


def keep_alive_seconds(lease_seconds: float) -> float:
    """How long an agent runs after the last renewal. The rest of the lease is for ending it: no other worker may start
    before it is gone."""
    return lease_seconds * 2 / 3


def default_lease_seconds(timeout_sec: int) -> int:
    return timeout_sec or UNLIMITED_SECONDS
