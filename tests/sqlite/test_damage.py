"""Rows that somebody else has written."""

from __future__ import annotations

import apsw
import pytest

from mam.errors import Refused
from mam.jobs.status import PENDING
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


@pytest.mark.parametrize("before", [0, 2])
def test_a_record_that_lost_its_key_does_not_keep_it_from_others(place: Place, before: int) -> None:
    """Also behind claims of jobs that have none."""
    registry = place.open()
    for _ in range(before):
        registry.register(prompt="p", agent="a", priority=1)
    for job_id in ("one", "two"):
        registry.register(prompt="p", agent="a", exclusive="key", job_id=job_id)
    database = apsw.Connection(str(place.path))
    database.execute("UPDATE job SET record = json_remove(record, '$.exclusive') WHERE job_id = 'one'")

    for _ in range(before + 1):
        job = registry.pick("a", owner="me")
        assert job is not None
        if job.job_id == "one":
            assert registry.store.holder("key") == "one"
        registry.complete(job.job_id, attempt=job.attempt)
    registry.register(prompt="p", agent="a", exclusive="key", job_id="three")

    assert registry.store.holder("key") is None
    job = registry.pick("a", owner="me")
    assert job is not None
    assert job.job_id == "two"
    held = database.execute("SELECT job_id, waits_for_key, holds_key FROM job WHERE exclusive = 'key' ORDER BY number")
    assert held.fetchall() == [("one", None, None), ("two", None, "key"), ("three", "key", None)]
    database.close()


def test_an_archived_job_whose_record_names_another_is_refused_all_the_same(place: Place) -> None:
    registry = place.open()
    for job_id in ("old", "live"):
        registry.register(prompt="p", agent="a", job_id=job_id)
    registry.cancel("old")
    assert registry.archive(["old"]) == ["old"]
    database = apsw.Connection(str(place.path))
    database.execute("UPDATE archive SET record = replace(record, '\"old\"', '\"live\"')")
    database.close()
    with pytest.raises(Refused, match="old is cancelled and archived"):
        registry.cancel("old")
    assert registry.get("live").status is PENDING
