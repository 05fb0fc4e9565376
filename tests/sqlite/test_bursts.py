"""Acts that follow each other closely say what each would say alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mam.clock import Moment
from mam.errors import ArtifactMissing, ClaimLost
from mam.jobs import acts
from mam.jobs.change import Change
from mam.jobs.record import Job
from mam.jobs.status import PENDING, RUNNING
from mam.registry import Registry
from mam.stores.port import Entry, Request
from mam.stores.sqlite.bursts import FREE, Burst
from mam.stores.sqlite.store import SqliteStore, create_sqlite_store
from mam.testing.clock import FakeClock
from mam.testing.conformance.base import check_journal

LABEL = "many"
REQUEST = Request(label=LABEL, owner='who "asks" 100% (%s)')
OWN = {"job_id": "", "number": 0, "topic_prefix": ""}
"""What differs between two jobs that are alike and were made in the same second."""

IDS = st.text("abcdejobstTZ019_-", min_size=1, max_size=12).filter(lambda text: text[0] not in "_-")
DRAFTS = st.fixed_dictionaries(
    {"prompt": st.sampled_from(["do it", '"job_id":"e"', "{}"])},
    optional={
        "timeout_sec": st.sampled_from([3600, 60]),
        "priority": st.integers(0, 1),
        "artifacts": st.just(("out.txt",)),
        "exclusive": st.sampled_from(["key", None]),
        "workdir": st.sampled_from(["/100% of it/%s", "/%(number)d"]),
    },
)
KINDS = st.lists(DRAFTS, min_size=1, max_size=2)
"""Few: jobs have to be alike for anything to be said again."""
WAYS = ("complete", "complete", "complete with a result", "fail", "release", "a word, and complete", "nothing")
STEPS = st.lists(st.tuples(st.sampled_from(WAYS), st.sampled_from([0.0, 0.0, 0.0, 0.06, 0.9])), max_size=10)


class Told(Burst):
    """Counts what it said again, or says nothing again."""

    def __init__(self, *, is_silent: bool = False) -> None:
        super().__init__()
        self.is_silent = is_silent
        self.claims = self.ends = 0

    def claimed_again(self, *asked: Any) -> Any:
        said = None if self.is_silent else super().claimed_again(*asked)
        self.claims += said is not None
        return said

    def ended_again(self, *asked: Any) -> Any:
        said = None if self.is_silent else super().ended_again(*asked)
        self.ends += said is not None
        return said


class Shop:
    def __init__(self, path: Path, *, is_silent: bool = False) -> None:
        create_sqlite_store(str(path))
        self.path = path
        self.clock = FakeClock()
        self.store = SqliteStore(str(path), self.clock)
        self.burst = self.store._burst = Told(is_silent=is_silent)
        self.registry = Registry(self.store)

    def register(self, *ids: str, **choices: Any) -> None:
        for job_id in ids:
            self.registry.register(**{"prompt": "x", **choices}, agent="shell", label=LABEL, job_id=job_id)
        self.clock.advance(1)

    def claim(self, request: Request = REQUEST) -> Job:
        job = self.store.claim(request)
        assert job is not None
        return job

    def entries(self) -> list[tuple[str, Any, Any]]:
        def plain(entry: Entry) -> tuple[str, Any, Any]:
            return entry.job_id, entry.fields, entry.lines

        return [plain(entry) for entry in self.store.entries(None)]


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "jobs.db")


def act_on(shop: Shop, job: Job, way: str) -> Job:
    attempt = job.attempt
    match way:
        case "complete":
            return shop.registry.complete(job.job_id, attempt=attempt)
        case "complete with a result":
            return shop.registry.complete(job.job_id, attempt=attempt, result="100%")
        case "fail":
            return shop.registry.fail(job.job_id, attempt=attempt, reason="no")
        case "release":
            return shop.registry.release(job.job_id, attempt=attempt)
        case "a word, and complete":
            shop.registry.publish(job.job_id, event="progress", attempt=attempt)
            return shop.registry.complete(job.job_id, attempt=attempt)
    return job


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(ids=st.sets(IDS, max_size=8), kinds=KINDS, steps=STEPS, back=st.sampled_from([0, -1, -1.3]))
def test_it_is_the_same_as_deciding_each_time(
    ids: set[str],
    kinds: list[dict[str, Any]],
    steps: list[tuple[str, float]],
    back: float,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Also where the clock is set back at each registration, and jobs seem to be made now or later."""
    folder = tmp_path_factory.mktemp("bursts")
    shops = [Shop(folder / "one.db"), Shop(folder / "two.db", is_silent=True)]
    for shop in shops:
        for place, job_id in enumerate(sorted(ids)):
            shop.register(job_id, **kinds[place % len(kinds)])
            shop.clock.set_wall(back)
        for way, seconds in steps:
            shop.clock.advance(seconds)
            job = shop.store.claim(REQUEST)
            if job is not None:
                assert shop.store.get(job.job_id) == job, "what is read is what was answered"
                try:
                    job = act_on(shop, job, way)
                except ArtifactMissing:
                    shop.registry.cancel(job.job_id)
                else:
                    assert shop.store.get(job.job_id) == job
    one, two = shops
    assert [one.store.get(job_id) for job_id in ids] == [two.store.get(job_id) for job_id in ids]
    assert [one.store.events(job_id) for job_id in ids] == [two.store.events(job_id) for job_id in ids]
    assert one.entries() == two.entries()
    for shop in shops:
        check_journal(shop.store)
        shop.store.close()


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
    assert {job.replace(**OWN) for job in map(hashable, ended)} == {hashable(ended[0]).replace(**OWN)}
    for job in ended:
        (event,) = shop.store.events(job.job_id)
        assert (event["job_id"], event["seq"], event["event"]) == (job.job_id, 1, "completed")


def hashable(job: Job) -> Job:
    return job.replace(broker=None, expected_artifacts=None, after=None, unknown=None)


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


class Seen(Job):
    """Remembers what it was asked for."""

    asked: ClassVar[set[str]] = set()

    def __getattribute__(self, name: str) -> Any:
        Seen.asked.add(name)
        return super().__getattribute__(name)


def test_neither_act_looks_at_what_jobs_may_differ_in(shop: Shop) -> None:
    """So it may be said again of jobs that differ in it; who lets an act look at more hears of it here."""
    shop.register("a")
    pending = shop.store.get("a")
    now = shop.clock.now()
    seen = Seen.of(pending.as_dict())
    Seen.asked = set()
    change = acts.claim(seen, now, owner="me", lease_seconds=None)
    assert Seen.asked & FREE == {"job_id", "status", "timeout_sec", "created_at"}
    seen = Seen.of(change.job.as_dict())
    Seen.asked = set()
    acts.complete(seen, now, attempt=1, result=None, look_first=True)
    assert Seen.asked & FREE == {"job_id", "status", "created_at"}


def test_an_act_of_another_kind_is_decided_each_time(shop: Shop) -> None:
    """The same function may make something else of every job."""
    shop.register(*"abcd")

    def end(job: Job, now: Moment) -> Change:
        return acts.fail(job, now, attempt=None, reason=f"{job.job_id} is {job.number}")

    for number, job_id in enumerate("abcd", 1):
        shop.claim()
        assert shop.store.change(job_id, end).reason == shop.store.get(job_id).reason == f"{job_id} is {number}"


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
        changed = {name for name in FREE if getattr(after, name) != getattr(before, name)}
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
