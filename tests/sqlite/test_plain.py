"""Claims and ends of plain jobs take a shorter way, and it leads to the same place."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from mam.errors import ArtifactMissing
from mam.jobs.change import Change
from mam.jobs.record import Job
from mam.jobs.status import PENDING, RUNNING
from mam.stores.port import Request
from mam.stores.sql.encoding import quick_text
from mam.stores.sqlite.bell import Bell
from mam.stores.sqlite.plain import STAYS
from mam.testing.conformance.base import check_journal
from mam.writing import as_text
from tests.sqlite.shop import REQUEST, Interrupted, LongWayStore, Shop

KINDS: list[dict[str, Any]] = [
    {},
    {},
    {"prompt": '"job_id":"e"', "workdir": "/100% of it/%s é \U0001f600"},
    {"priority": 1, "max_retries": 1, "timeout_sec": 60},
    {"timeout_sec": 0, "key": None},
    {"artifacts": ("out.txt",)},
    {"exclusive": "key"},
]
WAYS = ["complete"] * 6 + [
    "complete with a result", "complete without an attempt", "fail", "fail retryably", "release", "a word", "a sign",
    "nothing",
]  # fmt: skip
PAUSES = [0.0] * 10 + [0.06, 0.9, 70.0, 4000.0]
STEPS_BACK = [0.0] * 15 + [-0.01, -5.0]
ASKED: list[Request] = [REQUEST] * 4 + [
    REQUEST.replace(lease_seconds=5.0),
    REQUEST.replace(supervised=True, lease_seconds=60.0),
    REQUEST.replace(agent_id="gpu", generation_id="one"),
]


def act_on(shop: Shop, job: Job, way: str) -> Job:
    registry, attempt = shop.registry, job.attempt
    match way:
        case "complete":
            return registry.complete(job.job_id, attempt=attempt)
        case "complete with a result":
            return registry.complete(job.job_id, attempt=attempt, result='100% "é" \U0001f600')
        case "complete without an attempt":
            return registry.complete(job.job_id)
        case "fail":
            return registry.fail(job.job_id, attempt=attempt, reason="no")
        case "fail retryably":
            return registry.fail(job.job_id, attempt=attempt, reason="no", retryable=True)
        case "release":
            return registry.release(job.job_id, attempt=attempt)
        case "a word":
            registry.publish(job.job_id, event="progress", attempt=attempt)
            return registry.complete(job.job_id, attempt=attempt)
        case "a sign":
            registry.heartbeat(job.job_id, attempt=attempt)
            return registry.complete(job.job_id, attempt=attempt)
    return job


def lived_through(shop: Shop, seed: int) -> list[str]:
    """What chance makes of some jobs, the same for each shop; their ids."""
    chance = random.Random(seed)
    kinds = chance.choices(KINDS, k=2)
    ids = [f"{chance.choice('aZ0')}{number}-{chance.randrange(100)}" for number in range(20)]
    for number, job_id in enumerate(ids):
        after = {"after": [chance.choice(ids[:number])]} if number and chance.random() < 0.1 else {}
        shop.register(job_id, **chance.choice(kinds), **after)
    for _ in ids:
        shop.clock.advance(chance.choice(PAUSES))
        job = shop.store.claim(chance.choice(ASKED))
        if job is None:
            continue
        assert shop.store.get(job.job_id) == job, "what is read is what was answered"
        shop.clock.set_wall(chance.choice(STEPS_BACK))
        try:
            job = act_on(shop, job, chance.choice(WAYS))
        except ArtifactMissing:
            shop.registry.cancel(job.job_id)
        else:
            assert shop.store.get(job.job_id) == job
    return ids


def test_it_leads_where_the_long_way_does(tmp_path: Path) -> None:
    claims = ends = 0
    for seed in range(60):
        one, two = Shop(tmp_path / f"{seed}.one"), Shop(tmp_path / f"{seed}.two", LongWayStore)
        one.store._encode = quick_text if seed % 2 else as_text
        ids = lived_through(one, seed)
        lived_through(two, seed)
        assert [one.store.get(job_id) for job_id in ids] == [two.store.get(job_id) for job_id in ids]
        assert [one.store.events(job_id) for job_id in ids] == [two.store.events(job_id) for job_id in ids]
        assert one.entries() == two.entries()
        assert rows_of(one) == rows_of(two)
        assert (two.store.claims, two.store.ends) == (0, 0)
        claims, ends = claims + one.store.claims, ends + one.store.ends
        for shop in (one, two):
            check_journal(shop.store)
            shop.store.close()
    assert (claims > 400, ends > 200) == (True, True), (claims, ends)


def rows_of(shop: Shop) -> list[tuple[Any, ...]]:
    """All that the database knows of each job."""
    with apsw.Connection(str(shop.path)) as database:
        columns = [str(row[1]) for row in database.execute("PRAGMA table_xinfo(job)")]
        found = list(database.execute(f"SELECT {', '.join(columns)} FROM job ORDER BY number"))
    database.close()
    return found


def test_a_second_claim_of_a_job_begins_where_the_first_left_it(shop: Shop) -> None:
    shop.register("a")
    for attempt in (1, 2, 3):
        assert shop.claim().attempt == attempt
        assert shop.registry.release("a", attempt=attempt).status is PENDING
    assert shop.store.claims == 3


def test_an_act_of_ones_own_may_ask_a_job_for_anything(shop: Shop) -> None:
    shop.register(*"abcd")

    def end(job: Job, now: Any) -> Change:
        from mam.jobs import acts

        return acts.fail(job, now, attempt=None, reason=f"{job.job_id} is {job.number}")

    for number, job_id in enumerate("abcd", 1):
        shop.claim()
        assert shop.store.change(job_id, end).reason == shop.store.get(job_id).reason == f"{job_id} is {number}"


def test_what_was_not_committed_is_no_claim(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.register("a", "b")
    with monkeypatch.context() as patch:
        patch.setattr(shop.store, "_cursor", Interrupted(shop.store, before="COMMIT"))
        with pytest.raises(KeyboardInterrupt):
            shop.claim()
    assert {shop.claim().job_id, shop.claim().job_id} == {"a", "b"}
    assert [shop.store.get(job_id).attempt for job_id in "ab"] == [1, 1]


def test_what_fails_behind_the_commit_is_not_tried_again(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The claim stands, and its lease runs out; a second one would stand too."""

    def spoilt(_bell: Bell) -> None:
        raise ValueError("no bell")

    shop.register("a", "b")
    with monkeypatch.context() as patch:
        patch.setattr(Bell, "ring", spoilt)
        with pytest.raises(ValueError, match="no bell"):
            shop.claim()
    assert [shop.store.get(job_id).status for job_id in "ab"] == [RUNNING, PENDING]


# -- the quicker encoder ---------------------------------------------------------------------------------------------


def test_who_stays_takes_the_quicker_encoder(shop: Shop) -> None:
    for number in range(STAYS):
        assert shop.store._encode is as_text
        shop.register(f"job-{number}")
        shop.claim()
    encode: Callable[[object], str] = shop.store._encode
    assert encode is quick_text


def test_without_it_everything_goes_on(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "orjson", None)
    monkeypatch.delitem(sys.modules, "mam.stores.sql.encoding")
    for number in range(STAYS + 1):
        shop.register(f"job-{number}")
        shop.registry.complete(shop.claim().job_id, attempt=1)
    assert shop.store._encode is as_text


def test_a_field_that_it_cannot_write_is_kept(shop: Shop) -> None:
    """Of a newer program, or of somebody's own."""
    shop.store._encode = quick_text
    shop.register("a")
    with apsw.Connection(str(shop.path)) as database:
        database.execute("UPDATE job SET record = substr(record, 1, length(record) - 1) || ?", (f',"odd":{1 << 80}}}',))
    database.close()
    assert shop.claim().unknown == {"odd": 1 << 80}
    assert shop.registry.complete("a", attempt=1).unknown == shop.store.get("a").unknown == {"odd": 1 << 80}
