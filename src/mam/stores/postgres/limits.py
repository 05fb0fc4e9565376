"""How soon a connection notices that the other side is gone.

A worker ends its agents at two thirds of a lease without renewal. Within that time mam has to notice a dead connection
and to open a new one, so the limits follow from the lease.
"""

from __future__ import annotations

from mam.jobs.lease import NETWORK_SECONDS
from mam.util.frozen import Frozen

STATEMENT_SECONDS = 30.0
"""The longest statement. The server ends a longer one."""

ANSWER_SECONDS = STATEMENT_SECONDS + 5
"""The longest wait for an answer. Only a commit can take longer than a statement: a synchronous standby is away."""

PATIENCE_SECONDS = 10.0
"""How long a command tries to reach a server that answered before, or that is there and does not take writes yet."""

PAUSE_SECONDS = 0.1
"""Between two tries."""


class Limits(Frozen):
    silence_seconds: float
    """A connection is dead if the other side acknowledges nothing for this long."""
    connect_seconds: int
    """For each host of the address."""
    patience_share: float = 1.0
    """Of the time for which a command tries again. A worker reports a lost server before it has to end its agents."""

    @property
    def for_client(self) -> dict[str, int]:
        """Parameters of libpq."""
        probe = max(1, round(self.silence_seconds / 2))
        return {
            "connect_timeout": self.connect_seconds,
            "keepalives": 1,
            "keepalives_idle": probe,
            "keepalives_interval": probe,
            "keepalives_count": 2,
            "tcp_user_timeout": round(self.silence_seconds * 1000),
        }

    @property
    def for_server(self) -> dict[str, int]:
        """Settings of the session: a server that sends into a cut link would repeat it ever more rarely."""
        client = self.for_client
        names = ("keepalives_idle", "keepalives_interval", "keepalives_count")
        return {"tcp_user_timeout": client["tcp_user_timeout"], **{f"tcp_{name}": client[name] for name in names}}


def limits(lease_seconds: float | None = None, hosts: int = 1) -> Limits:
    lease = NETWORK_SECONDS if lease_seconds is None else min(lease_seconds, NETWORK_SECONDS)
    for_all_hosts = lease / 24
    return Limits(
        silence_seconds=max(2.0, lease / 18),
        connect_seconds=max(2, min(5, int(for_all_hosts / hosts))),  # libpq takes no less than 2
        patience_share=lease / NETWORK_SECONDS,
    )
