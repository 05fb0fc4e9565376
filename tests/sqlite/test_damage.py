"""Rows that somebody else has written."""

from __future__ import annotations

import apsw
import pytest

from tests.damage import (
    SPOILT,
    VERBS,
    Check,
    check_lease_passed_over,
    check_others_go_on,
    check_passed_over,
    check_spoilt_record,
)
from tests.sqlite.conftest import Place


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("damage", SPOILT)
def test_a_record_that_was_spoilt_is_told_in_one_line(place: Place, damage: str, verb: str) -> None:
    registry = place.open()
    registry.register(prompt="p", agent="a", job_id="bad")
    assert registry.pick("a", owner="me") is not None
    database = apsw.Connection(str(place.path))
    database.execute("UPDATE job SET record = ?", (SPOILT[damage],))
    database.close()
    check_spoilt_record(registry.store, damage, verb)
    check_others_go_on(registry.store)


@pytest.mark.parametrize("check", [check_passed_over, check_lease_passed_over])
@pytest.mark.parametrize("damage", SPOILT)
def test_a_row_that_was_spoilt_is_in_nobodys_way(place: Place, damage: str, check: Check) -> None:
    def write(record: str) -> None:
        database = apsw.Connection(str(place.path))
        database.execute("UPDATE job SET record = ? WHERE job_id = 'bad'", (record,))
        database.close()

    check(place.open().store, write, damage)


def test_who_finds_a_spoilt_row_set_aside_by_another_goes_on(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, other = place.open(), place.open()
    for job_id in ("bad", "first", "second"):
        ours.register(prompt="p", agent="a", job_id=job_id)
    database = apsw.Connection(str(place.path))
    database.execute("UPDATE job SET record = 'no record' WHERE job_id = 'bad'")
    database.close()
    act, acts = ours.store._act, []  # type: ignore[attr-defined]

    def overtaken(do: object, *given: object) -> object:
        """The first act meets the row, the second would set it aside."""
        acts.append(do)
        if len(acts) == 2:
            assert (taken := other.pick("a", owner="other")) is not None
            assert taken.job_id == "first"
        return act(do, *given)

    monkeypatch.setattr(ours.store, "_act", overtaken)
    assert (claimed := ours.pick("a", owner="me")) is not None
    assert claimed.job_id == "second"
