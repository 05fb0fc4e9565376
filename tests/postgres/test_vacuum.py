"""What claims leave behind is taken away by the server's own vacuum, also where little of a large table has changed."""

from __future__ import annotations

import psycopg

from mam.registry import Registry
from tests.postgres.settled import SettledStore

JOBS = 600


def test_a_vacuum_goes_through_the_indexes_however_little_has_changed(url: str, other: SettledStore) -> None:
    registry = Registry(other)
    for _ in range(JOBS):
        registry.register(prompt="x" * 1500, agent="shell", label="many")
    assert registry.pick("many", owner="me") is not None

    said: list[str] = []
    with psycopg.connect(url, autocommit=True) as connection:
        connection.add_notice_handler(lambda notice: said.append(notice.message_primary or ""))
        connection.execute("VACUUM (VERBOSE) mam.job")

    assert any(notice.startswith("vacuuming") for notice in said)
    assert "bypassed" not in "".join(said)
