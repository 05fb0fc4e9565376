"""Formatting and parsing of times, and the clocks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam.testing.clock import FakeClock
from mam.util.clock import Moment, SystemClock, iso_milli, iso_second, parse_time

YEAR_9999 = 253_402_300_799_999
WALL = st.integers(min_value=0, max_value=YEAR_9999)


@given(WALL)
def test_a_time_is_read_as_it_was_written(wall_ms: int) -> None:
    assert parse_time(iso_milli(wall_ms)) == wall_ms
    assert parse_time(iso_second(wall_ms)) == wall_ms // 1000 * 1000


@given(WALL)
def test_the_own_form_agrees_with_datetime(wall_ms: int) -> None:
    moment = datetime.fromtimestamp(wall_ms // 1000, UTC)

    assert iso_second(wall_ms) == moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    assert parse_time(iso_second(wall_ms)) == round(moment.timestamp()) * 1000


@given(
    st.datetimes(min_value=datetime(1970, 1, 2), max_value=datetime(9999, 12, 30)),
    st.integers(min_value=-14 * 60, max_value=14 * 60),
)
def test_any_time_with_a_zone_is_understood(naive: datetime, minutes: int) -> None:
    moment = naive.replace(microsecond=naive.microsecond // 1000 * 1000, tzinfo=timezone(timedelta(minutes=minutes)))
    exact = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)

    assert parse_time(moment.isoformat()) == exact


@pytest.mark.parametrize("text", ["2026-01-01T00:00:00", "2026-01-01", "2026-01-01 10:00", "2026-01-01T00:00:00.000"])
def test_a_time_without_a_zone_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="zone"):
        parse_time(text)


@pytest.mark.parametrize(
    "text",
    [
        "", "now", "2026", "Z", "tomorrow at noon Z..", "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z",
        "2026-01-32T00:00:00Z", "2026-01-00T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z",
        "2026-01-01T00:00:60Z", "2026-01-01T00:00:00.12Z5", "2026-01-01Tab:00:00Z", "2026-02-30T00:00:00Z",
        "2025-02-29T00:00:00Z", "2026-04-31T00:00:00.000Z", "2026/01/01T00:00:00Z", "2026-01-01T00-00-00Z",
        "2026-01-01T-1:00:00Z", "+026-01-01T00:00:00Z", "2026-01-01T 1:00:00Z", "２０２６-01-01T00:00:00Z",
        "2026-1_-01T00:00:00Z",
    ],
)  # fmt: skip
def test_an_invalid_time_is_rejected(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - datetime's words are its own
        parse_time(text)


def test_a_leap_day_counts() -> None:
    assert parse_time("2024-02-29T00:00:00Z") == parse_time("2024-03-01T00:00:00Z") - 86_400_000
    assert parse_time("2000-02-29T00:00:00Z") == parse_time("2000-03-01T00:00:00Z") - 86_400_000


def test_the_system_clock_advances_and_ids_do_not_repeat() -> None:
    clock = SystemClock()
    one, two = clock.now(), clock.now()

    assert one.boot_ms <= two.boot_ms
    assert one.boot_id == two.boot_id
    assert 0 <= clock.chance() < 1
    ids = {clock.new_id() for _ in range(100)}
    assert len(ids) == 100
    assert all(len(job_id) == 32 and set(job_id) <= set("0123456789abcdef") for job_id in ids)


def test_a_moment_shows_its_second() -> None:
    assert Moment(wall_ms=1_767_225_600_999).second == "2026-01-01T00:00:00Z"


def test_the_fake_clock_moves_only_when_advanced() -> None:
    clock = FakeClock()
    start = clock.now()

    assert clock.now() == start
    clock.advance(1.5)
    assert clock.now() == start.replace(wall_ms=start.wall_ms + 1500, boot_ms=start.boot_ms + 1500)
    clock.set_wall(-10)
    assert clock.now() == start.replace(wall_ms=start.wall_ms - 8500, boot_ms=start.boot_ms + 1500)
    clock.restart(2)
    assert clock.now() == Moment(wall_ms=start.wall_ms - 6500, boot_ms=0, boot_id="boot-2")
    assert [FakeClock().new_id() for _ in range(2)] == [FakeClock().new_id()] * 2
    assert clock.new_id()[:8] != clock.new_id()[:8]
