"""The rules of a subscriber: it reports what the registry holds, once and in order, whatever messages arrive."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from mam.events.subscriber import Subscription
from mam.events.wire import to_wire

JOB, TOKEN = "abc12345", "the-token-of-this-job"


def event(seq: int, name: str = "progress", **data: Any) -> dict[str, Any]:
    return {
        "schema_version": 1, "seq": seq, "job_id": JOB, "event": name, "timestamp": "2026-01-01T00:00:00Z",
        "detail": f"number {seq}", "data": data,
    }  # fmt: skip


def subscription(token: str | None = TOKEN, **settings: Any) -> Subscription:
    return Subscription(JOB, now=100.0, token=token, **settings)


def test_the_next_signed_message_is_accepted() -> None:
    one = subscription()

    assert one.receive(to_wire(event(1), TOKEN), 101).accepted == event(1)
    assert one.seen == 1


def test_an_unsigned_message_only_makes_it_read_the_registry() -> None:
    one = subscription(token=None)

    verdict = one.receive(to_wire(event(1)), 101)

    assert (verdict.accepted, verdict.dropped, verdict.read_upto) == (None, None, 1)
    assert one.seen == 0


def test_a_gap_is_read_back() -> None:
    one = subscription()

    assert one.receive(to_wire(event(3), TOKEN), 101).read_upto == 3
    assert one.read([event(1), event(2), event(3)], 101) == [event(1), event(2), event(3)]


def test_a_truncated_message_makes_it_read_the_registry() -> None:
    assert subscription().receive(to_wire(event(1, text="x" * 60_000), TOKEN), 101).read_upto == 1


def test_a_repetition_is_not_reported_again() -> None:
    one = subscription()
    one.receive(to_wire(event(1), TOKEN), 101)

    verdict = one.receive(to_wire(event(1), TOKEN), 102)

    assert (verdict.accepted, verdict.dropped, verdict.read_upto) == (None, None, None)


@pytest.mark.parametrize(
    ("name", "data", "status"),
    [
        ("completed", {"status": "completed"}, "completed"),
        ("error", {"status": "error"}, "error"),
        ("error", {"status": "cancelled"}, "cancelled"),
        ("error", {}, "error"),
        ("completed", {"status": "cancelled"}, "completed"),
        ("error", {"status": ["cancelled"]}, "error"),
    ],
)
def test_the_end_is_noticed_even_when_its_number_was_seen(name: str, data: dict[str, Any], status: str) -> None:
    one = subscription(seen=4)

    assert one.receive(to_wire(event(4, name, **data), TOKEN), 101).accepted is None
    assert one.ended == status


def test_without_a_token_the_registry_confirms_the_end() -> None:
    one = subscription(token=None, seen=4)

    assert one.receive(to_wire(event(4, "completed")), 101).read_upto == 4
    assert one.ended is None
    one.read([event(4, "completed", status="completed")], 102)
    assert one.ended == "completed"


def test_a_subscriber_continues_after_a_marker() -> None:
    one = subscription()

    told = one.read([{"marker": "imported", "seq": 1, "upto": 4}, event(5)], 101)

    assert (told, one.seen) == ([event(5)], 5)


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (to_wire({**event(1), "job_id": "other"}, TOKEN), "another job"),
        (to_wire({**event(1), "schema_version": 2}, TOKEN), "schema_version"),
        (to_wire(event(1)), "not signed"),
        (to_wire(event(1), "another token"), "signature is wrong"),
        (b"garbage", "not JSON"),
    ],
)
def test_foreign_messages_are_dropped_with_a_reason(message: bytes, why: str) -> None:
    one = subscription()

    assert why in (one.receive(message, 101).dropped or "")
    assert (one.seen, one.ended) == (0, None)


# -- time ------------------------------------------------------------------------------------------------------------


def test_the_time_is_counted_from_the_beginning() -> None:
    one = subscription(timeout=10, idle_timeout=0)
    one.receive(to_wire(event(1), TOKEN), 109)

    assert (one.expired(109.9), one.deadline()) == (None, 110)
    assert one.expired(110) == "has not ended"


def test_silence_is_counted_from_the_last_event() -> None:
    one = subscription(idle_timeout=10)
    one.receive(to_wire(event(1), TOKEN), 109)

    assert one.expired(118.9) is None
    assert one.expired(119) == "said nothing"


def test_a_repetition_is_no_sign_of_life() -> None:
    one = subscription(idle_timeout=10)
    one.receive(to_wire(event(1), TOKEN), 101)
    one.receive(to_wire(event(1), TOKEN), 110)

    assert one.expired(111) == "said nothing"


def test_waiting_for_permission_is_not_silence() -> None:
    one = subscription(idle_timeout=10)
    one.receive(to_wire(event(1, "permission_required"), TOKEN), 101)

    assert (one.expired(10_000), one.deadline()) == (None, None)
    one.receive(to_wire(event(2), TOKEN), 10_000)
    assert one.expired(10_010) == "said nothing"


def test_the_idle_timeout_does_not_run_before_a_job_starts() -> None:
    one = subscription(idle_timeout=10, idle_begins=False)

    assert one.expired(10_000) is None


def test_a_timeout_of_0_never_expires() -> None:
    one = subscription(timeout=0, idle_timeout=0)

    assert (one.expired(1e9), one.deadline()) == (None, None)


def test_an_ended_one_has_all_the_time() -> None:
    one = subscription(timeout=1, idle_timeout=1)
    one.receive(to_wire(event(1, "completed"), TOKEN), 100)

    assert one.expired(1e9) is None


# -- any stream ------------------------------------------------------------------------------------------------------


@some.composite
def streams(draw: some.DrawFn) -> tuple[list[dict[str, Any]], list[tuple[int, bytes]], str | None]:
    """A job's events, and a stream in which they are doubled, out of order, left out, repeated and forged. With each
    message comes how many events the registry has by then: an event is stored before it is sent."""
    token = draw(some.sampled_from([TOKEN, None]))
    length = draw(some.integers(1, 8))
    last = draw(some.sampled_from(["completed", "error"]))
    data = {"status": draw(some.sampled_from(["error", "cancelled"])) if last == "error" else "completed"}
    events = [event(seq) for seq in range(1, length)] + [event(length, last, **data)]
    sent = draw(some.lists(some.integers(1, length), max_size=20))
    stored, stream = 0, []
    for seq in sent:
        stored = max(stored, seq, draw(some.integers(0, length)))
        stream.append((stored, to_wire(events[seq - 1], token)))
        if draw(some.booleans()):
            stream.append((stored, draw(_forgeries(length, events, token))))
    return events, stream, token


def _forgeries(length: int, events: list[dict[str, Any]], token: str | None) -> some.SearchStrategy[bytes]:
    lies = some.builds(
        lambda seq, name, key: to_wire({**event(seq, name, lie=True)}, key),
        some.integers(1, length + 3),
        some.sampled_from(["started", "progress", "completed", "error", "permission_required"]),
        some.sampled_from([None, "a guess"]),
    )
    foreign = some.builds(
        lambda seq, key: to_wire({**event(seq, "completed"), "job_id": "foreign"}, key),
        some.integers(1, length), some.just(token),
    )  # fmt: skip
    altered = some.builds(
        lambda seq: to_wire(events[seq - 1], token).replace(b"number", b"NUMBER"), some.integers(1, length)
    )
    return some.one_of(lies, foreign, altered, some.binary(max_size=40))


@settings(max_examples=400, deadline=None)
@given(streams())
def test_any_stream_ends_as_the_ordered_one(
    made: tuple[list[dict[str, Any]], list[tuple[int, bytes]], str | None],
) -> None:
    events, stream, token = made
    one = subscription(token=token)
    told: list[dict[str, Any]] = []

    for stored, message in stream:
        verdict = one.receive(message, 101)
        if verdict.accepted is not None:
            told.append(verdict.accepted)
        if verdict.read_upto is not None:
            told += one.read(events[:stored], 101)
        assert told == events[: len(told)]
        assert one.ended in (None, _status(events))
    told += one.read(events, 102)

    assert told == events
    assert one.ended == _status(events)


def _status(events: list[dict[str, Any]]) -> str:
    status: str = events[-1]["data"]["status"]
    return status
