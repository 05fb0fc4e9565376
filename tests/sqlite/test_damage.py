"""Rows that another program has written: one clear line for every verb, and the others go on.

Types and checks keep most of a row readable; what is left are the JSON columns.
"""

from __future__ import annotations

from collections.abc import Callable

import apsw
import pytest

from mam.errors import BadRecord, Refused
from mam.jobs.status import PENDING
from mam.registry import Registry
from mam.stores.port import ClaimRequest, Query
from mam.stores.sqlite.store import SqliteStore
from mam.testing.clock import FakeClock
from mam.testing.conformance.base import check_journal
from tests.sqlite.conftest import StoreFile

SPOILT = {
    "a count that is text": """extra = '{"depth": "deep"}'""",
    "a word that is none": """extra = '{"permissions": "all"}'""",
    "a broker that is a number": """extra = '{"broker": 5}'""",
    "a newer version": """extra = '{"schema_version": 99}'""",
}
REFUSED = {
    "no JSON": "extra = '{oops'",
    "no object": "extra = '[1]'",
    "a status that is none": "status = 'asleep'",
    "a running job without a lease": "status = 'running', lease_expires_at = NULL",
    "a count below zero": "attempt = -1",
    "no timeout": "timeout_sec = NULL",
    "artifacts that are an object": "expected_artifacts = '{}'",
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


def spoil(store_file: StoreFile, damage: str) -> None:
    database = apsw.Connection(str(store_file.path))
    try:
        database.execute(f"UPDATE job SET {damage} WHERE job_id = 'bad'")
    finally:
        database.close()


@pytest.mark.parametrize("damage", REFUSED)
def test_the_database_refuses_most_damage(store_file: StoreFile, damage: str) -> None:
    store_file.open().register(prompt="p", agent="a", job_id="bad")
    with pytest.raises((apsw.ConstraintError, apsw.SQLError)):
        spoil(store_file, REFUSED[damage])


@pytest.mark.parametrize(("damage", "verb"), PAIRS)
def test_an_unreadable_row_is_reported_in_one_line(store_file: StoreFile, damage: str, verb: str) -> None:
    registry = store_file.open()
    registry.register(prompt="p", agent="a", job_id="bad")
    assert registry.pick("a", owner="me") is not None
    spoil(store_file, SPOILT[damage])
    with pytest.raises(BadRecord) as caught:
        VERBS[verb](registry)
    assert "\n" not in str(caught.value)
    assert registry.store.address in str(caught.value)
    registry.register(prompt="p", agent="b", label="b", job_id="good")
    job = registry.pick("b", owner="me")
    assert job is not None
    assert registry.complete(job.job_id, attempt=job.attempt).status == "completed"


@pytest.mark.parametrize("damage", SPOILT)
def test_an_unreadable_pending_row_blocks_no_job(store_file: StoreFile, damage: str) -> None:
    """mam sets it aside, names it, and takes it back when it is mended."""
    registry = store_file.open()
    registry.register(prompt="p", agent="a", priority=1, job_id="bad")
    registry.register(prompt="p", agent="a", job_id="good")
    spoil(store_file, SPOILT[damage])
    job = registry.pick("a", owner="me")
    assert job is not None
    assert job.job_id == "good"
    assert registry.pick("a", owner="me") is None
    assert [job.job_id for job in registry.select(Query())] == ["good"]
    (problem,) = registry.store.problems()
    assert "bad" in problem.file
    spoil(store_file, "extra = '{}'")
    assert [job.job_id for job in registry.select(Query())] == ["good", "bad"]
    assert registry.store.problems() == []
    job = registry.pick("a", owner="me")
    assert job is not None
    assert job.job_id == "bad"
    check_journal(registry.store)


@pytest.mark.parametrize("damage", SPOILT)
def test_an_expired_unreadable_row_stops_no_sweep(store_file: StoreFile, damage: str) -> None:
    clock = FakeClock()
    store = SqliteStore(str(store_file.path), clock)
    registry = Registry(store)
    for job_id in ("bad", "lost"):
        registry.register(prompt="p", agent="a", job_id=job_id)
        assert store.claim(ClaimRequest(label="a", owner="me", lease_seconds=1, job_id=job_id)) is not None
    clock.advance(2)
    spoil(store_file, SPOILT[damage])
    job = registry.pick("a", owner="me")
    assert job is not None
    assert (job.job_id, job.losses) == ("lost", 1)
    assert store.due_in() != 0
    assert len(store.problems()) == 1
    store.close()


def test_an_unreadable_row_that_another_process_set_aside_is_skipped(
    store_file: StoreFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, other = store_file.open(), store_file.open()
    for job_id in ("bad", "first", "second"):
        ours.register(prompt="p", agent="a", job_id=job_id)
    spoil(store_file, SPOILT["a broker that is a number"])
    act, acts = ours.store._in_transaction, []  # type: ignore[attr-defined]

    def overtaken(do: object, *given: object) -> object:
        """The first act meets the row, the second would set it aside."""
        acts.append(do)
        if len(acts) == 2:
            assert (taken := other.pick("a", owner="other")) is not None
            assert taken.job_id == "first"
        return act(do, *given)

    monkeypatch.setattr(ours.store, "_in_transaction", overtaken)
    assert (claimed := ours.pick("a", owner="me")) is not None
    assert claimed.job_id == "second"


def test_an_archived_job_whose_record_names_another_is_refused_all_the_same(store_file: StoreFile) -> None:
    registry = store_file.open()
    for job_id in ("old", "live"):
        registry.register(prompt="p", agent="a", job_id=job_id)
    registry.cancel("old")
    assert registry.archive(["old"]) == ["old"]
    database = apsw.Connection(str(store_file.path))
    database.execute("UPDATE archive SET record = replace(record, '\"old\"', '\"live\"')")
    database.close()
    with pytest.raises(Refused, match="old is cancelled and archived"):
        registry.cancel("old")
    assert registry.get("live").status is PENDING
