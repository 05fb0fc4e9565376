"""Records that somebody has spoilt in the database itself: one clear line for every verb, and the others go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from mam.errors import BadRecord
from mam.registry import Registry
from mam.stores.port import Query

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
    "too deep": "[" * 100_000,
}

Verb = Callable[[Registry], object]

VERBS: dict[str, Verb] = {
    "get": lambda registry: registry.get("bad"),
    "list": lambda registry: list(registry.select(Query())),
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
