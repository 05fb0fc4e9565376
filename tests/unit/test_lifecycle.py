"""The rule for transitions against the table of the contract."""

from __future__ import annotations

import pytest

from mam.errors import IllegalMove, UnknownStatus
from mam.jobs.change import moved
from mam.jobs.status import Status, check_move, parse_status
from tests.unit.jobs import NOW, in_status

TABLE = """
pending   -> running waiting error cancelled
waiting   -> pending error cancelled
running   -> completed error waiting pending cancelled
completed ->
error     ->
cancelled ->
"""
LEGAL = {
    (status.strip(), to)
    for status, _, ends in (row.partition("->") for row in TABLE.strip().splitlines())
    for to in ends.split()
}
PAIRS = [(status, to) for status in Status for to in Status]


@pytest.mark.parametrize("status", list(Status))
def test_a_move_is_legal_exactly_if_the_contract_lists_it(status: Status) -> None:
    for to in Status:
        if (status, to) in LEGAL:
            check_move("abc12345", status, to)
        else:
            with pytest.raises(IllegalMove) as refused:
                check_move("abc12345", status, to)
            assert str(refused.value) == f"Job abc12345 is {status} and cannot become {to}."
            assert refused.value.exit_code == 1


@pytest.mark.parametrize("status", list(Status))
def test_no_change_of_a_status_goes_round_the_rule(status: Status) -> None:
    job = in_status(status)
    for to in Status:
        if (status, to) not in LEGAL:
            with pytest.raises(IllegalMove):
                moved(job, to, NOW, "test", {})
            continue

        change = moved(job, to, NOW, "test", {})

        assert change.job.status is to
        assert (change.lines[0]["from"], change.lines[0]["to"]) == (status, to)
        assert [line["event"] for line in change.lines[1:]] == (["published"] if to.ended else [])


def test_there_are_six_statuses_and_three_ends() -> None:
    assert [str(status) for status in Status] == ["pending", "waiting", "running", "completed", "error", "cancelled"]
    assert [str(status) for status in Status if status.ended] == ["completed", "error", "cancelled"]


@pytest.mark.parametrize("word", ["banana", "", "Pending", "PENDING", "done", "pending ", "stalled"])
def test_any_other_name_is_not_a_status(word: str) -> None:
    with pytest.raises(UnknownStatus, match="choose from pending, waiting") as refused:
        parse_status(word)

    assert refused.value.exit_code == 1


@pytest.mark.parametrize("status", list(Status))
def test_a_status_is_read_as_it_is_written(status: Status) -> None:
    assert parse_status(str(status)) is status
