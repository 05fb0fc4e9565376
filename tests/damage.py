"""Records that somebody has spoilt in the database itself: one clear line for every verb, and the others go on."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from mam.errors import BadRecord
from mam.jobs.sweep import is_due
from mam.registry import Registry
from mam.stores.port import Query, Request
from mam.stores.sql.rows import new_row

if TYPE_CHECKING:
    from mam.stores.port import Store

SPOILT = {
    "no JSON": "{oops",
    "no object": "[1]",
    "empty": "",
    "no id": '{"status":"running"}',
    "no status": '{"job_id":"bad"}',
    "a status that is none": '{"job_id":"bad","status":"asleep","created_at":"2026-01-01T00:00:00Z","number":1}',
    "a count that is text": '{"job_id":"bad","status":"running","created_at":"2026-01-01T00:00:00Z",'
    '"updated_at":"2026-01-01T00:00:00Z","agent":"a","agent_session":"a","number":1,"attempt":"one","last_seq":"x"}',
    "a lease that is none": '{"job_id":"bad","status":"running","created_at":"2026-01-01T00:00:00Z",'
    '"updated_at":"2026-01-01T00:00:00Z","agent":"a","agent_session":"a","number":1,"attempt":1,'
    '"lease":{"expires_at":"soon","seconds":1,"boot_id":"","boot_ms":0}}',
    "a lease of other fields": '{"job_id":"bad","status":"running","created_at":"2026-01-01T00:00:00Z",'
    '"updated_at":"2026-01-01T00:00:00Z","agent":"a","agent_session":"a","number":1,"attempt":1,"lease":{"until":1}}',
    "a lease that is a number": '{"job_id":"bad","status":"running","created_at":"2026-01-01T00:00:00Z",'
    '"updated_at":"2026-01-01T00:00:00Z","agent":"a","agent_session":"a","number":1,"attempt":1,"lease":5}',
    "too deep": "[" * 100_000,
}

Verb = Callable[[Registry], object]
Check = Callable[["Store", Callable[[str], None], str], None]

VERBS: dict[str, Verb] = {
    "get": lambda registry: registry.get("bad"),
    "complete": lambda registry: registry.complete("bad", attempt=1),
    "publish": lambda registry: registry.publish("bad", event="progress", attempt=1),
    "next_seq": lambda registry: registry.next_seq("bad"),
    "release": lambda registry: registry.release("bad", attempt=1),
}


MENDING = {("a lease that is none", "complete"), ("a lease that is none", "release")}
"""What takes the lease away without a look at it leaves a record that is whole again."""


def check_spoilt_record(store: Store, damage: str, verb: str) -> None:
    if (damage, verb) in MENDING:
        VERBS[verb](Registry(store))
        assert store.get("bad").lease is None
        return
    with pytest.raises(BadRecord) as caught:
        VERBS[verb](Registry(store))
    assert "\n" not in str(caught.value)
    assert store.address in str(caught.value)


def check_others_go_on(store: Store) -> None:
    registry = Registry(store)
    registry.register(prompt="p", agent="b", label="b", job_id="good")
    job = registry.pick("b", owner="me")
    assert job is not None
    assert registry.complete(job.job_id, attempt=job.attempt).status == "completed"


def check_passed_over(store: Store, write: Callable[[str], None], damage: str) -> None:
    """In the way of others it would stop them all; so it is set aside, named, and comes back when it is mended."""
    registry = Registry(store)
    registry.register(prompt="p", agent="a", priority=1, job_id="bad")
    registry.register(prompt="p", agent="a", job_id="good")
    whole = new_row(store.get("bad"), None).record
    write(SPOILT[damage])
    job = registry.pick("a", owner="me")
    assert job is not None
    assert job.job_id == "good"
    assert registry.pick("a", owner="me") is None
    assert [job.job_id for job in registry.select(Query())] == ["good"]
    (problem,) = store.problems()
    assert "bad" in problem.file
    write(whole)
    assert [job.job_id for job in registry.select(Query())] == ["good", "bad"]
    assert store.problems() == []
    job = registry.pick("a", owner="me")
    assert job is not None
    assert job.job_id == "bad"


def check_lease_passed_over(store: Store, write: Callable[[str], None], damage: str) -> None:
    """Nobody can tell what becomes of it; what time has decided about others is done all the same."""
    registry = Registry(store)
    for job_id in ("bad", "lost"):
        registry.register(prompt="p", agent="a", job_id=job_id)
        assert store.claim(Request(label="a", owner="me", lease_seconds=1, job_id=job_id)) is not None
    while not is_due(store.get("lost"), store.clock.now()):
        time.sleep(0.05)
    write(SPOILT[damage])
    job = registry.pick("a", owner="me")
    assert job is not None
    assert (job.job_id, job.losses) == ("lost", 1)
    assert store.due_in() != 0
    assert len(store.problems()) == 1
