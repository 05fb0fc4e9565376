"""Claims that follow each other closely say what each would say alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mam.jobs.record import Job
from mam.jobs.status import PENDING, RUNNING
from mam.registry import Registry
from mam.stores.port import Entry, Request
from mam.stores.sqlite.bursts import Burst
from mam.stores.sqlite.store import SqliteStore, create_sqlite_store
from mam.testing.clock import FakeClock

LABEL = "many"
REQUEST = Request(label=LABEL, owner='who "asks"')

IDS = st.text("abcdejobstTZ019_-", min_size=1, max_size=12).filter(lambda text: text[0] not in "_-")
DRAFTS = st.fixed_dictionaries(
    {"prompt": st.sampled_from(["do it", '"job_id":"e"', "{}"])},
    optional={
        "timeout_sec": st.sampled_from([3600, 60]),
        "priority": st.integers(0, 2),
        "artifacts": st.just(("out.txt",)),
        "exclusive": st.sampled_from(["key", None]),
        "max_retries": st.just(1),
    },
)


class Told(Burst):
    """Counts what it said again, or says nothing again."""

    def __init__(self, *, is_silent: bool = False) -> None:
        super().__init__()
        self.is_silent = is_silent
        self.count = 0

    def again(self, *asked: Any) -> Any:
        said = None if self.is_silent else super().again(*asked)
        self.count += said is not None
        return said


class Shop:
    def __init__(self, path: Path, *, is_silent: bool = False) -> None:
        create_sqlite_store(str(path))
        self.clock = FakeClock()
        self.store = SqliteStore(str(path), self.clock)
        self.burst = self.store._burst = Told(is_silent=is_silent)
        self.registry = Registry(self.store)

    def register(self, *ids: str, **choices: Any) -> None:
        for job_id in ids:
            self.registry.register(**{"prompt": "x", **choices}, agent="shell", label=LABEL, job_id=job_id)

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


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(drafts=st.dictionaries(IDS, DRAFTS, min_size=1, max_size=6), ends=st.lists(st.booleans(), max_size=6))
def test_it_is_the_same_as_deciding_each_time(
    drafts: dict[str, dict[str, Any]], ends: list[bool], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("bursts")
    shops = [Shop(folder / "one.db"), Shop(folder / "two.db", is_silent=True)]
    for shop in shops:
        for job_id, draft in drafts.items():
            shop.register(job_id, **draft)
        for ends_it in ends:
            job = shop.store.claim(REQUEST)
            if job is not None:
                assert shop.store.get(job.job_id) == job, "what is read is what was answered"
                if ends_it:
                    shop.registry.fail(job.job_id, attempt=job.attempt, reason="no")
                else:
                    shop.registry.release(job.job_id, attempt=job.attempt)
    one, two = shops
    assert [one.store.get(job_id) for job_id in drafts] == [two.store.get(job_id) for job_id in drafts]
    assert one.entries() == two.entries()
    for shop in shops:
        shop.store.close()


def test_the_second_claim_says_what_the_first_said(shop: Shop) -> None:
    shop.register("a", "b")
    first, second = shop.claim(), shop.claim()
    assert shop.burst.count == 1
    alike = {"job_id": "", "number": 0, "topic_prefix": ""}
    assert first.replace(**alike) == second.replace(**alike)
    assert shop.registry.complete("b", attempt=1).status == "completed"
    assert [event["job_id"] for event in shop.store.events("b")] == ["b"]


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
    assert (shop.burst.count, job.status, job.lease.expired(shop.clock.now())) == (0, RUNNING, False)


def test_the_next_second_is_another(shop: Shop) -> None:
    shop.register("a", "b")
    shop.clock.advance((1000 - shop.clock.now().wall_ms % 1000 - 1) / 1000)
    shop.claim()
    shop.clock.advance(0.002)
    job = shop.claim()
    assert (shop.burst.count, job.claimed_at) == (0, shop.clock.now().second)


@pytest.mark.parametrize("choices", [{"timeout_sec": 60}, {"exclusive": "key"}, {"after": ["a"]}])
def test_a_job_of_another_kind_is_decided_for(shop: Shop, choices: dict[str, Any]) -> None:
    shop.register("a", "b")
    shop.register("c", **choices, priority=-1)
    shop.registry.complete(shop.claim().job_id, attempt=1)
    shop.registry.sweep()
    assert (shop.claim().job_id, shop.burst.count) == ("b", 1)
    assert (shop.claim().job_id, shop.burst.count) == ("c", 1)


def test_a_job_that_was_handed_back_is_decided_for(shop: Shop) -> None:
    shop.register("a")
    for attempt in (1, 2, 3):
        job = shop.claim()
        assert (shop.burst.count, job.attempt) == (0, attempt)
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
