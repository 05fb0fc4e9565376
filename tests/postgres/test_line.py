"""A burst of claims begins where the line did when it last looked, and is passed by nothing that comes before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from mam.jobs import acts
from mam.jobs.pause import Pause
from mam.jobs.record import Job
from mam.jobs.status import PENDING
from mam.registry import Registry
from mam.stores.port import Request
from mam.stores.postgres import line as lines
from mam.stores.postgres.acting import STATEMENTS
from mam.stores.postgres.line import Line
from mam.stores.postgres.store import PostgresStore
from tests.postgres.crashes import BEFORE, DisturbedStore, disturbed
from tests.postgres.settled import SettledStore
from tests.postgres.test_server_clock import TestByTheServersClock as ByTheServersClock

if TYPE_CHECKING:
    from mam.clock import Clock
    from mam.stores.port import Store
    from mam.stores.postgres.line import Beginning

LABEL = "line"
REQUEST = Request(label=LABEL, owner="burst")


class EagerLine(Line):
    """Looks before its first claim, and never again while it is believed."""

    def beginning(self, label: str, claims: int, look: Callable[[str], Any | None]) -> Beginning | None:
        if self._known[0] != label:
            self._known = (label, None)
            return super().beginning(label, lines.LOOK_AFTER, look)
        return self._known[1]


class EagerStore(DisturbedStore):
    def __init__(self, url: str, clock: Clock | None = None) -> None:
        super().__init__(url, clock)
        self._line = EagerLine()

    def forget_the_line(self) -> None:
        self._line.forget()
        self._fresh._said = None


@pytest.fixture
def store(url: str) -> Iterator[EagerStore]:
    store = EagerStore(url)
    yield store
    store.close()


def register(store: PostgresStore, **choices: Any) -> Job:
    return Registry(store).register(**{"prompt": "p", "agent": "a", "label": LABEL, **choices}).job


def sent_for(store: EagerStore, do: Callable[[], object]) -> str:
    """All that goes to the server meanwhile."""
    sent: list[str] = []
    with disturbed(store, lambda statement, when: sent.append(statement) if when == BEFORE else None):
        do()
    return "\n".join(sent)


def claim(store: PostgresStore) -> Job | None:
    return Registry(store).claim(REQUEST)


def claim_in_line(store: EagerStore) -> Job:
    """One trip, and not from the very beginning."""
    found: list[Job | None] = []
    sent = sent_for(store, lambda: found.append(claim(store)))
    assert "number >= $" in sent
    assert sent.count("BEGIN") <= 2  # the claim, and a look before it
    assert found[0] is not None
    return found[0]


# -- what comes before -------------------------------------------------------------------------------------------------


def released(other: PostgresStore, held: Job) -> str:
    return Registry(other).release(held.job_id, attempt=1).job_id


def set_by_hand(other: PostgresStore, held: Job) -> str:
    return other.change(held.job_id, partial(acts.set_status, to=PENDING, attempt=None)).job_id


def tried_again(other: PostgresStore, held: Job) -> str:
    other.change(held.job_id, partial(acts.fail_retryable, attempt=1, reason="busy", delay_seconds=0.0))
    assert [job.job_id for job in other.sweep()] == [held.job_id]
    return held.job_id


def more_important(other: PostgresStore, _held: Job) -> str:
    return register(other, priority=1).job_id


def freed_by_a_key(other: PostgresStore, _held: Job) -> str:
    """The key's next job is older than where the line begins."""
    Registry(other).complete("holder", attempt=1)
    return "waits-for-the-key"


def freed_by_an_end(other: PostgresStore, _held: Job) -> str:
    Registry(other).complete("needed", attempt=1)
    return "comes-after"


def mended(other: PostgresStore, _held: Job) -> str:
    with psycopg.connect(other._server._conninfo(), autocommit=True) as connection:
        connection.execute("UPDATE mam.job SET record = record || '}' WHERE job_id = 'spoilt'")
    assert other.problems() == []
    return "spoilt"


WAYS = [released, set_by_hand, tried_again, more_important, freed_by_a_key, freed_by_an_end, mended]


def set_the_stage(other: PostgresStore, way: object) -> None:
    """What is older than the line, and not in it yet."""
    registry = Registry(other)
    if way is freed_by_a_key:
        register(other, exclusive="key", job_id="holder")
        register(other, exclusive="key", job_id="waits-for-the-key")
        assert registry.pick(LABEL, owner="other") is not None
    elif way is freed_by_an_end:
        register(other, job_id="needed", label="elsewhere")
        register(other, job_id="comes-after", after=["needed"])
        assert registry.pick("elsewhere", owner="other") is not None
    elif way is mended:
        register(other, job_id="spoilt")
        with psycopg.connect(other._server._conninfo(), autocommit=True) as connection:
            connection.execute("UPDATE mam.job SET record = left(record, -1) WHERE job_id = 'spoilt'")
        assert registry.pick(LABEL, owner="other") is None


@pytest.mark.parametrize("way", WAYS)
def test_what_comes_to_the_front_is_next(
    store: EagerStore, other: SettledStore, way: Callable[[PostgresStore, Job], str]
) -> None:
    set_the_stage(other, way)
    waiting = [register(other) for _ in range(5)]
    register(store, label="nowhere")  # whoever has done nothing yet asks before it claims
    held = claim_in_line(store)
    assert held.job_id == waiting[0].job_id
    store.forget_the_line()  # and looks once more, so that this one is before the line
    assert claim_in_line(store).job_id == waiting[1].job_id

    before = way(other, held)

    found = claim(store)
    assert found is not None
    assert found.job_id == before
    after = claim(store)
    assert after is not None
    assert after.job_id == waiting[2].job_id


def test_only_what_may_come_before_others_moves_the_line(store: EagerStore, url: str) -> None:
    """All who move it wait for each other, so nobody does without need."""
    registry = Registry(store)
    with psycopg.connect(url, autocommit=True) as connection:

        def moved(do: Callable[[], object]) -> int:
            (before,) = connection.execute("SELECT moves FROM mam.store").fetchone() or (0,)
            do()
            (after,) = connection.execute("SELECT moves FROM mam.store").fetchone() or (0,)
            return int(after - before)

        assert moved(lambda: register(store, job_id="plain")) == 0
        assert moved(lambda: register(store, job_id="urgent", priority=1)) == 1
        assert moved(lambda: registry.publish("plain", event="progress")) == 0
        assert moved(lambda: claim(store)) == 0
        assert moved(lambda: registry.heartbeat("urgent", attempt=1)) == 0
        assert moved(lambda: registry.release("urgent", attempt=1)) == 1
        assert moved(lambda: registry.cancel("urgent")) == 0
        assert moved(lambda: register(store, job_id="after", after=["plain"])) == 0
        assert moved(lambda: claim(store)) == 0
        assert moved(lambda: registry.complete("plain", attempt=1)) == 1
        assert moved(lambda: store.sweep()) == 1


def test_a_look_that_takes_long_is_given_up(store: EagerStore, url: str) -> None:
    """Whoever registers waits for it."""
    register(store)
    with psycopg.connect(url) as connection:
        connection.execute("LOCK TABLE mam.pause IN ACCESS EXCLUSIVE MODE")
        assert store._acting.line_of(LABEL) is None
    assert store._acting.line_of(LABEL) is not None


def test_a_pause_holds_at_once(store: EagerStore, other: SettledStore) -> None:
    for _ in range(3):
        register(store)
    claim_in_line(store)
    other.pause(Pause(agent=None, label=LABEL, until=None, reason=None, made_at="2026-11-17T00:00:00Z", probe=None))
    assert claim(store) is None


def test_a_lease_that_ran_out_comes_first(store: EagerStore) -> None:
    first, *_others = [register(store) for _ in range(4)]
    short = Registry(store).claim(Request(label=LABEL, owner="burst", lease_seconds=0.001))
    assert short is not None
    assert short.job_id == first.job_id
    while store.clock.now().wall_ms <= short.lease.wall_ms:  # type: ignore[union-attr]
        pass
    again = claim(store)
    assert again is not None
    assert (again.job_id, again.attempt) == (first.job_id, 2)


# -- what comes behind -------------------------------------------------------------------------------------------------


def test_new_jobs_are_found_without_another_look(store: EagerStore, other: SettledStore) -> None:
    for _ in range(2):
        register(store)
    claim_in_line(store)
    claim_in_line(store)
    later = register(other)
    assert claim_in_line(store).job_id == later.job_id


def test_those_of_less_priority_come_when_the_others_are_gone(store: EagerStore, other: SettledStore) -> None:
    register(store, priority=3)
    least = register(other, priority=-1)
    claim_in_line(store)
    found = claim(store)
    assert found is not None
    assert found.job_id == least.job_id


def test_new_jobs_come_before_those_of_less_priority(store: EagerStore, other: SettledStore) -> None:
    for _ in range(3):
        register(store, priority=-1)
    assert claim(store) is not None
    usual = register(other)
    found = claim(store)
    assert found is not None
    assert found.job_id == usual.job_id


def test_it_is_not_known_while_somebody_registers(store: EagerStore, url: str) -> None:
    """Who has a number may come in before those who got theirs later and were quicker."""
    slow = DisturbedStore(url)
    claimed: list[Job | None] = []

    def overtake(statement: str, when: str) -> None:
        if (statement, when) == ("COMMIT", BEFORE):
            slow.disturb = None
            for _ in range(3):
                register(store)
            sent = sent_for(store, lambda: claimed.append(claim(store)))
            assert "number >= $" not in sent

    slow.disturb = overtake
    late = register(slow)
    assert claimed[0] is not None
    assert claimed[0].number > late.number
    found = claim(store)
    assert found is not None
    assert found.job_id == late.job_id
    slow.close()


def test_jobs_that_others_have_in_hand_are_not_passed_for_ever(store: EagerStore, url: str) -> None:
    first, *_others = [register(store) for _ in range(4)]
    with psycopg.connect(url) as holding:
        holding.execute("SELECT FROM mam.job WHERE job_id = %s FOR UPDATE", (first.job_id,))
        assert claim_in_line(store).job_id != first.job_id
        holding.rollback()
    assert claim_in_line(store).job_id == first.job_id


def test_what_others_claimed_is_not_walked_over(store: EagerStore, url: str) -> None:
    for _ in range(700):
        register(store)
    for _ in range(600):
        claim(store)
    store.forget_the_line()
    claim_in_line(store)
    known = store._line._known[1]
    assert known is not None
    with psycopg.connect(url, options="-c search_path=mam -c enable_seqscan=off", autocommit=True) as connection:

        def pages(condition: str) -> int:
            chosen = f"label = '{LABEL}' AND blocked = 0 {condition}"
            asked = f"SELECT FROM job WHERE {chosen} ORDER BY priority DESC, number LIMIT 1"
            connection.execute(asked.encode())  # what is dead is known to be from now on
            plan = connection.execute(
                f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {asked}".encode()
            ).fetchone()
            assert plan is not None
            return int(plan[0][0]["Plan"]["Shared Hit Blocks"])

        assert pages(f"AND priority = 0 AND number >= {known['number']}") < pages("")


# -- when it looks -----------------------------------------------------------------------------------------------------


def test_it_looks_after_so_many_claims_of_one_label() -> None:
    line, looks = Line(), []

    def look(label: str) -> tuple[int, int, int]:
        looks.append(label)
        return (7, 0, 40 + len(looks))

    known = [line.beginning("a", 1, look) for _ in range(2 * lines.LOOK_AFTER + 1)]
    assert known[: lines.LOOK_AFTER] == [None] * lines.LOOK_AFTER
    assert known[lines.LOOK_AFTER] == known[2 * lines.LOOK_AFTER - 1] == {"moves": 7, "priority": 0, "number": 41}
    assert known[-1] == {"moves": 7, "priority": 0, "number": 42}
    assert looks == ["a", "a"]
    assert line.beginning("b", lines.LOOK_AFTER, look) is None
    assert line.beginning("a", 1, look) is None
    assert looks == ["a", "a"]
    assert line.beginning("a", lines.LOOK_AFTER, look) is not None


def test_what_was_forgotten_or_cannot_be_known_is_unknown() -> None:
    line = Line()
    line.beginning("a", 0, lambda _: None)
    assert line.beginning("a", lines.LOOK_AFTER, lambda _: None) is None
    assert line.beginning("a", lines.LOOK_AFTER, lambda _: (1, 2, 3)) is not None
    line.forget()
    assert line.beginning("a", lines.LOOK_AFTER, lambda _: (1, 2, 3)) is None


def test_both_ways_to_claim_are_one_but_for_where_they_begin() -> None:
    anywhere, in_line = STATEMENTS["claim fresh"].parameters, STATEMENTS["claim in line"].parameters
    assert set(in_line) - set(anywhere) == {"moves", "priority", "number"}
    assert set(anywhere) <= set(in_line)


class TestByTheServersClockInLine(ByTheServersClock):
    """What the suite asks of claims, of a store that begins where the line does from its first claim on."""

    @staticmethod
    def open_store(place: str, clock: Clock | None = None) -> Store:
        ByTheServersClock.open_store(place, clock).close()
        return EagerStore(place)
