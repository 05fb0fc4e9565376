"""How long a server may be unreachable before a worker ends its agents."""

from __future__ import annotations

import pytest

from mam.jobs.lease import NETWORK_SECONDS, keep_alive_seconds, renewal_seconds
from mam.stores.postgres.limits import PATIENCE_SECONDS, limits

AWAY_SECONDS = 90


@pytest.mark.parametrize("hosts", [1, 2, 3])
def test_a_server_unreachable_for_90_seconds_ends_no_agent(hosts: int) -> None:
    """It goes away right before a renewal, and comes back right after an attempt to connect has begun."""
    connecting = limits(NETWORK_SECONDS, hosts).connect_seconds * hosts
    assert renewal_seconds(NETWORK_SECONDS) + AWAY_SECONDS + connecting < keep_alive_seconds(NETWORK_SECONDS)


def test_the_default_renews_every_20_seconds() -> None:
    assert (NETWORK_SECONDS, renewal_seconds(NETWORK_SECONDS)) == (180, 20)


@pytest.mark.parametrize("lease", [30.0, 60.0, 180.0])
def test_a_dead_connection_is_noticed_and_replaced_before_the_agents_end(lease: float) -> None:
    found = limits(lease)
    noticed = renewal_seconds(lease) + found.silence_seconds + found.connect_seconds
    assert noticed < keep_alive_seconds(lease)


@pytest.mark.parametrize("lease", [20.0, 60.0, 180.0])
def test_a_worker_reports_an_unreachable_server_before_the_agents_end(lease: float) -> None:
    found = limits(lease)
    last_try = PATIENCE_SECONDS * found.patience_share + found.connect_seconds
    reported = renewal_seconds(lease) + max(found.silence_seconds, last_try)
    assert reported < keep_alive_seconds(lease)
