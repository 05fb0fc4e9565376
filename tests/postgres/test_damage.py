"""Rows that another program has written: one clear line for every verb, and the others go on.

Types and a few checks keep most of a row readable; what is left are the JSON columns.
"""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from mam.errors import BadRecord
from mam.jobs.sweep import is_due
from mam.registry import Registry
from mam.stores.port import ClaimRequest, Query
from mam.stores.postgres.store import PostgresStore
from mam.testing.conformance.base import check_journal
from tests.waiting import await_that

SPOILT = {
    "a count that is text": """extra = '{"depth": "deep"}'""",
    "a word that is none": """extra = '{"permissions": "all"}'""",
    "a broker that is a number": """extra = '{"broker": 5}'""",
    "a newer version": """extra = '{"schema_version": 99}'""",
    "no object": "extra = '[1]'",
    "artifacts that are an object": "expected_artifacts = '{}'",
    "a run that is text": """run = '"fast"'""",
    "too deep": "extra = ('{\"x\":' || repeat('[', 3000) || repeat(']', 3000) || '}')::json",
}
REFUSED = {
    "no JSON": "extra = '{oops'",
    "a status that is none": "status = 'asleep'",
    "a running job without a lease": "status = 'running', lease_expires_at = NULL",
    "no timeout": "timeout_sec = NULL",
}
VERBS: dict[str, Callable[[Registry], object]] = {
    "get": lambda registry: registry.get("bad"),
    "complete": lambda registry: registry.complete("bad", attempt=1),
    "publish": lambda registry: registry.publish("bad", event="progress", attempt=1),
    "next_seq": lambda registry: registry.next_seq("bad"),
    "release": lambda registry: registry.release("bad", attempt=1),
}
PAIRS = [
    *((damage, verb) for damage in SPOILT for verb in ("get", "complete")),
    *((next(iter(SPOILT)), verb) for verb in ("publish", "next_seq", "release")),
]
"""`complete` is one statement of its own; the others read the row first, as `get` does."""


def spoil(url: str, damage: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"UPDATE mam.job SET {damage} WHERE job_id = 'bad'".encode())


def mend(url: str) -> None:
    spoil(url, "extra = '{}', expected_artifacts = '[]', run = NULL")


@pytest.mark.parametrize("damage", REFUSED)
def test_the_database_refuses_most_damage(other: PostgresStore, url: str, damage: str) -> None:
    Registry(other).register(prompt="p", agent="a", job_id="bad")
    with pytest.raises((psycopg.IntegrityError, psycopg.errors.InvalidTextRepresentation)):
        spoil(url, REFUSED[damage])


@pytest.mark.parametrize(("damage", "verb"), PAIRS)
def test_an_unreadable_row_is_one_clear_line(other: PostgresStore, url: str, damage: str, verb: str) -> None:
    registry = Registry(other)
    registry.register(prompt="p", agent="a", job_id="bad")
    assert registry.pick("a", owner="me") is not None
    spoil(url, SPOILT[damage])
    with pytest.raises(BadRecord) as caught:
        VERBS[verb](registry)
    assert "\n" not in str(caught.value)
    assert other.address in str(caught.value)
    registry.register(prompt="p", agent="b", label="b", job_id="good")
    job = registry.pick("b", owner="me")
    assert job is not None
    assert registry.complete(job.job_id, attempt=job.attempt).status == "completed"


@pytest.mark.parametrize("damage", SPOILT)
def test_an_unreadable_pending_row_blocks_no_claim(other: PostgresStore, url: str, damage: str) -> None:
    """It is set aside, named, and comes back when it is mended."""
    registry = Registry(other)
    registry.register(prompt="p", agent="a", priority=1, job_id="bad")
    registry.register(prompt="p", agent="a", job_id="good")
    spoil(url, SPOILT[damage])
    job = registry.pick("a", owner="me")
    assert job is not None
    assert job.job_id == "good"
    assert registry.pick("a", owner="me") is None
    assert [job.job_id for job in registry.select(Query())] == ["good"]
    (problem,) = other.problems()
    assert "bad" in problem.file
    mend(url)
    assert [job.job_id for job in registry.select(Query())] == ["good", "bad"]
    assert other.problems() == []
    job = registry.pick("a", owner="me")
    assert job is not None
    assert job.job_id == "bad"
    check_journal(other)


@pytest.mark.parametrize("damage", SPOILT)
def test_an_expired_unreadable_row_does_not_stop_a_sweep(other: PostgresStore, url: str, damage: str) -> None:
    registry = Registry(other)
    for job_id in ("bad", "lost"):
        registry.register(prompt="p", agent="a", job_id=job_id)
        assert other.claim(ClaimRequest(label="a", owner="me", lease_seconds=1, job_id=job_id)) is not None
    await_that(lambda: is_due(other.get("lost"), other.clock.now()))
    spoil(url, SPOILT[damage])
    job = registry.pick("a", owner="me")
    assert job is not None
    assert (job.job_id, job.losses) == ("lost", 1)
    assert other.due_in() != 0
    assert len(other.problems()) == 1
