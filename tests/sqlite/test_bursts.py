"""Acts that follow each other closely say what each would say alone."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mam.clock import Moment
from mam.errors import ArtifactMissing, ClaimLost
from mam.jobs import acts
from mam.jobs.change import Change
from mam.jobs.record import Job
from mam.jobs.status import PENDING, RUNNING
from mam.registry import Registry
from mam.stores.port import Request
from mam.stores.sqlite.bursts import UNASKED
from mam.stores.sqlite.store import SqliteStore
from mam.testing.conformance.base import check_journal
from tests.sqlite.shop import REQUEST, Shop

OWN = {"job_id": "", "number": 0, "topic_prefix": ""}
"""What differs between two jobs that are alike and were made in the same second."""

KINDS: list[dict[str, Any]] = [
    {},
    {},
    {"prompt": '"job_id":"e"', "workdir": "/100% of it/%s"},
    {"priority": 1, "max_retries": 1, "timeout_sec": 60},
    {"artifacts": ("out.txt",)},
    {"exclusive": "key"},
]
OTHER_WAYS = ["complete with a result", "complete without an attempt", "fail", "release", "a word", "nothing"]
WAYS = ["complete"] * 10 + OTHER_WAYS
PAUSES = [0.0] * 20 + [0.06, 0.9]
STEPS_BACK = [0.0] * 30 + [-0.01, -5.0]


def act_on(shop: Shop, job: Job, way: str) -> Job:
    attempt = job.attempt
    match way:
        case "complete":
            return shop.registry.complete(job.job_id, attempt=attempt)
        case "complete with a result":
            return shop.registry.complete(job.job_id, attempt=attempt, result="100%")
        case "complete without an attempt":
            return shop.registry.complete(job.job_id)
        case "fail":
            return shop.registry.fail(job.job_id, attempt=attempt, reason="no")
        case "release":
            return shop.registry.release(job.job_id, attempt=attempt)
        case "a word":
            shop.registry.publish(job.job_id, event="progress", attempt=attempt)
            return shop.registry.complete(job.job_id, attempt=attempt)
    return job


def lived_through(shop: Shop, seed: int) -> list[str]:
    """What chance makes of some jobs, the same for each shop; their ids."""
    chance = random.Random(seed)
    kinds = chance.choices(KINDS, k=2)
    ids = [f"{chance.choice('aZ0')}{number}-{chance.randrange(100)}" for number in range(20)]
    for job_id in ids:
        shop.register(job_id, **chance.choice(kinds))
    for _ in ids:
        shop.clock.advance(chance.choice(PAUSES))
        job = shop.store.claim(REQUEST)
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


def test_it_is_the_same_as_deciding_each_time(tmp_path: Path) -> None:
    claims = ends = 0
    for seed in range(60):
        one, two = Shop(tmp_path / f"{seed}.one"), Shop(tmp_path / f"{seed}.two", is_silent=True)
        ids = lived_through(one, seed)
        lived_through(two, seed)
        assert [one.store.get(job_id) for job_id in ids] == [two.store.get(job_id) for job_id in ids]
        assert [one.store.events(job_id) for job_id in ids] == [two.store.events(job_id) for job_id in ids]
        assert one.entries() == two.entries()
        claims, ends = claims + one.burst.claims, ends + one.burst.ends
        for shop in (one, two):
            check_journal(shop.store)
            shop.store.close()
    assert (claims > 400, ends > 100) == (True, True), (claims, ends)


def test_the_second_claim_says_what_the_first_said(shop: Shop) -> None:
    shop.register("a", "b")
    first, second = shop.claim(), shop.claim()
    assert shop.burst.claims == 1
    assert first.replace(**OWN) == second.replace(**OWN)


def test_the_next_end_says_what_the_last_said(shop: Shop) -> None:
    """Of jobs whose claims were said again; and each is told under its own name."""
    shop.register(*"abcd")
    ended = [shop.registry.complete(shop.claim().job_id, attempt=1) for _ in "abcd"]
    assert (shop.burst.claims, shop.burst.ends) == (3, 2)
    assert all(job.replace(**OWN) == ended[0].replace(**OWN) for job in ended)
    for job in ended:
        (event,) = shop.store.events(job.job_id)
        assert (event["job_id"], event["seq"], event["event"]) == (job.job_id, 1, "completed")


def test_an_end_that_is_said_again_is_not_written_over_what_somebody_else_did(shop: Shop) -> None:
    shop.register(*"abcd")
    jobs = [shop.claim() for _ in "abcd"]
    other = Registry(SqliteStore(str(shop.path), shop.clock))
    other.publish("c", event="progress", detail="half")
    other.release("d")
    before = len(shop.entries())
    for job in jobs[:3]:
        shop.registry.complete(job.job_id, attempt=1)
    with pytest.raises(ClaimLost):
        shop.registry.complete("d", attempt=1)
    assert shop.burst.ends == 2, "tried for c and for d, and taken back"
    assert [event["event"] for event in shop.store.events("c")] == ["progress", "completed"]
    assert (shop.store.get("d").status, len(shop.entries()) - before) == (PENDING, 3)
    check_journal(shop.store)


def later(shop: Shop) -> Request:
    shop.clock.advance(0.06)
    return REQUEST


def stepped_back(shop: Shop) -> Request:
    shop.clock.set_wall(-0.01)
    return REQUEST


def an_hour_set_back(shop: Shop) -> Request:
    """By the wall clock no time has passed, and a lease that began at the first claim would be over."""
    shop.clock.advance(3600)
    shop.clock.set_wall(-3600)
    return REQUEST


OTHERWISE: dict[str, Callable[[Shop], Request]] = {
    "later": later,
    "the clock stepped back": stepped_back,
    "an hour later, and set back by one": an_hour_set_back,
    "another owner": lambda _: REQUEST.replace(owner="another"),
    "another lease": lambda _: REQUEST.replace(lease_seconds=5.0),
    "a worker": lambda _: REQUEST.replace(supervised=True),
    "a session": lambda _: REQUEST.replace(agent_id="gpu", generation_id="one"),
}


@pytest.mark.parametrize("how", OTHERWISE)
def test_who_asks_otherwise_is_decided_for(shop: Shop, how: str) -> None:
    shop.register("a", "b")
    shop.registry.complete(shop.claim().job_id, attempt=1)  # or it would be lost, and come first, an hour later
    job = shop.claim(OTHERWISE[how](shop))
    assert job.lease is not None
    assert (shop.burst.claims, job.status, job.lease.expired(shop.clock.now())) == (0, RUNNING, False)


def odd(value: object) -> object:
    return {int: 7, str: "odd", dict: {"odd": 1}, type(None): "odd"}[type(value)]


ASKED_BY = {"claim": {"job_id", "status", "timeout_sec"}, "complete": {"job_id", "status"}}
ACTS: dict[str, Callable[[Job, Moment], Change]] = {
    "claim": lambda job, now: acts.claim(job, now, owner="me", lease_seconds=None),
    "complete": lambda job, now: acts.complete(job, now, attempt=1, result=None, look_first=True),
}


@pytest.mark.parametrize("act", ACTS)
def test_neither_act_asks_for_what_jobs_may_differ_in(shop: Shop, act: str) -> None:
    """So it may be said again of jobs that differ in it; who lets an act ask for more hears of it here."""
    shop.register("a")
    job, now = shop.store.get("a") if act == "claim" else shop.claim(), shop.clock.now()
    plain = ACTS[act](job, now)
    for name in (UNASKED | {"prompt", "topic_prefix"}) - ASKED_BY[act]:
        other = "2025-01-01T00:00:00Z" if name in ("created_at", "updated_at") else odd(getattr(job, name))
        change = ACTS[act](job.replace(**{name: other}), now)
        assert (change.lines, change.fields) == (plain.lines, plain.fields), name


def test_an_act_of_another_kind_is_decided_each_time(shop: Shop) -> None:
    """The same function may make something else of every job."""
    shop.register(*"abcd")

    def end(job: Job, now: Moment) -> Change:
        return acts.fail(job, now, attempt=None, reason=f"{job.job_id} is {job.number}")

    for number, job_id in enumerate("abcd", 1):
        shop.claim()
        assert shop.store.change(job_id, end).reason == shop.store.get(job_id).reason == f"{job_id} is {number}"


def test_each_end_is_what_was_asked_for(shop: Shop) -> None:
    shop.register(*"abcde")
    for _ in "abcde":
        shop.claim()
    for job_id in "abc":
        shop.registry.complete(job_id, attempt=1)
    ended = [shop.registry.complete("d"), shop.registry.complete("e", attempt=1, result="r")]
    assert (shop.burst.ends, [job.result for job in ended]) == (1, [None, "r"])
    unfenced = {job_id: any(line.get("unfenced") for line in lines) for job_id, _, lines in shop.entries()}
    assert [job_id for job_id in "abcde" if unfenced[job_id]] == ["d"]


def test_an_end_with_words_of_its_own_is_not_in_the_way_of_others(shop: Shop) -> None:
    shop.register(*"abcdef")
    for _ in "abcdef":
        shop.claim()
    for job_id, result in zip("bcdef", (None, "r", None, "r", None), strict=True):
        shop.registry.complete(job_id, attempt=1, result=result)
    assert shop.burst.ends == 2, "of d and of f, as of b"


def test_a_job_is_not_changed_before_it_was_made(shop: Shop) -> None:
    shop.register(*"abc")
    for _ in "abc":
        shop.claim()
    shop.clock.set_wall(-3600)
    for job_id in "abc":
        job = shop.registry.complete(job_id, attempt=1)
        assert (job.updated_at, job.ended_at) == (job.created_at, shop.clock.now().second)


def test_a_lease_that_ends_soon_is_each_ones_own(shop: Shop) -> None:
    shop.register(*"ab")
    short = REQUEST.replace(lease_seconds=0.04)
    shop.registry.complete(shop.claim(short).job_id, attempt=1)
    shop.clock.advance(0.03)
    lease = shop.claim(short).lease
    assert lease is not None
    assert lease.left_ms(shop.clock.now()) == 40


def test_the_next_second_is_another(shop: Shop) -> None:
    shop.register("a", "b")
    shop.clock.advance((1000 - shop.clock.now().wall_ms % 1000 - 1) / 1000)
    shop.claim()
    shop.clock.advance(0.002)
    job = shop.claim()
    assert (shop.burst.claims, job.claimed_at) == (0, shop.clock.now().second)


@pytest.mark.parametrize(
    "choices", [{"timeout_sec": 60}, {"exclusive": "key"}, {"after": ["a"]}, {"artifacts": ("out.txt",)}]
)
def test_a_job_of_another_kind_is_decided_for(shop: Shop, choices: dict[str, Any]) -> None:
    shop.register("a", "b")
    shop.register("c", **choices, priority=-1)
    shop.registry.complete(shop.claim().job_id, attempt=1)
    shop.registry.sweep()
    assert (shop.claim().job_id, shop.burst.claims) == ("b", 1)
    assert (shop.claim().job_id, shop.burst.claims) == ("c", 1)


def test_what_jobs_may_differ_in_is_kept_for_each(shop: Shop) -> None:
    kinds: list[dict[str, Any]] = [{}, {"workdir": "/one", "priority": 3}, {"key": "k", "max_retries": 1}, {}]
    for job_id, choices in zip("abcd", kinds, strict=True):
        shop.register(job_id, **choices)
    registered = {job_id: shop.store.get(job_id) for job_id in "abcd"}
    for _ in "abcd":
        job = shop.claim()
        shop.registry.complete(job.job_id, attempt=1)
    assert (shop.burst.claims, shop.burst.ends) == (3, 2)
    for job_id, before in registered.items():
        after = shop.store.get(job_id)
        changed = {name for name in UNASKED if getattr(after, name) != getattr(before, name)}
        assert changed == {"status", "updated_at"}


def test_a_job_that_was_handed_back_is_decided_for(shop: Shop) -> None:
    shop.register("a")
    for attempt in (1, 2, 3):
        job = shop.claim()
        assert (shop.burst.claims, job.attempt) == (0, attempt)
        assert shop.registry.release("a", attempt=attempt).status is PENDING


def test_what_was_not_committed_is_no_claim(shop: Shop) -> None:
    """The first one's words are right even if its transaction came to nothing."""
    shop.register("a", "b")
    do = shop.store._do

    def fails(query: str, *values: Any) -> Any:
        if query == "commit":
            raise KeyboardInterrupt
        return do(query, *values)

    shop.store._do = fails  # type: ignore[method-assign, assignment]
    with pytest.raises(KeyboardInterrupt):
        shop.claim()
    del shop.store._do
    assert {shop.claim().job_id, shop.claim().job_id} == {"a", "b"}
    assert [shop.store.get(job_id).attempt for job_id in "ab"] == [1, 1]
