"""Records that somebody has edited by hand; and an interrupt between two statements."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from mam.jobs.status import RUNNING
from tests.sqlite.shop import LABEL, REQUEST, CountingStore, Interrupted, LongWayStore, Shop

SPOILT = {
    "of another label": lambda record: record.replace(f'"agent_session":"{LABEL}"', '"agent_session":"other"'),
    "without a number": lambda record: record.replace(',"number":3', ""),
    "with another's number": lambda record: record.replace('"number":3', '"number":1'),
    "with an odd number": lambda record: record.replace('"number":3', '"number":{}'),
    "with a huge number": lambda record: record.replace('"number":3', f'"number":{1 << 80}'),
    "with NaN in a field of somebody's own": lambda record: record.replace('"number":3', '"number":3,"odd":NaN'),
    "with an endless number in it": lambda record: record.replace('"number":3', '"number":3,"odd":[1e400]'),
    "said to be ended": lambda record: record.replace('"status":"pending"', '"status":"error"'),
}


@pytest.mark.parametrize("how", SPOILT)
@pytest.mark.parametrize("kind", [CountingStore, LongWayStore])
def test_a_record_that_contradicts_its_row_is_set_aside(tmp_path: Path, how: str, kind: type[CountingStore]) -> None:
    """Whichever way it is claimed."""
    shop = Shop(tmp_path / "jobs.db", kind)
    shop.register(*"abcd")
    spoil(shop, "c", SPOILT[how])
    assert [shop.claim().job_id for _ in "abd"] == ["a", "b", "d"]
    assert [shop.store.get(job_id).attempt for job_id in "abd"] == [1, 1, 1]
    (problem,) = shop.store.problems()
    assert "job c" in problem.file
    assert shop.store.claim(REQUEST) is None


def spoil(shop: Shop, job_id: str, how: Callable[[str], str]) -> None:
    database = apsw.Connection(str(shop.path))
    record = str(database.execute("SELECT record FROM job WHERE job_id = ?", (job_id,)).fetchall()[0][0])
    assert how(record) != record
    database.execute("UPDATE job SET record = ? WHERE job_id = ?", (how(record), job_id))
    database.close()


def test_a_running_job_that_lost_its_number_is_swept_once(shop: Shop) -> None:
    shop.register("a", "b")
    shop.claim()
    spoil(shop, "a", lambda record: record.replace(',"number":1', ""))
    shop.clock.advance(4000)
    before = len(shop.entries())
    assert (shop.claim().job_id, len(shop.entries()) - before) == ("b", 1)


def test_a_field_that_somebody_wrote_twice_is_read_as_it_was_written_last(shop: Shop) -> None:
    shop.register("a", "b")
    spoil(shop, "b", lambda record: f'{record[:-1]},"status":"pending"}}')
    jobs = [shop.claim(), shop.claim()]
    assert [shop.store.get(job.job_id).status for job in jobs] == [RUNNING, RUNNING]


def test_an_interrupt_right_behind_the_beginning_leaves_nothing_open(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.register("a")

    with monkeypatch.context() as patch:
        patch.setattr(shop.store, "_cursor", Interrupted(shop.store, behind="BEGIN IMMEDIATE"))
        with pytest.raises(KeyboardInterrupt):
            shop.claim()
    assert shop.claim().job_id == "a"
