"""Which jobs can be parents, and the fields of a child that name its parent."""

from __future__ import annotations

import pytest

from mam.errors import Refused
from mam.jobs.rights import can_be_parent, parent_fields
from mam.jobs.status import Status
from tests.unit.jobs import in_status, pending


@pytest.mark.parametrize("status", Status)
def test_an_ended_job_cannot_be_a_parent(status: Status) -> None:
    job = in_status(status)
    assert can_be_parent(job) is not status.ended
    if status.ended:
        with pytest.raises(Refused, match=f"is {status} and cannot register a job"):
            parent_fields(job, 3)
    else:
        assert parent_fields(job, 3) == {"parent_id": job.job_id, "depth": 1, "registered_by": None}


def test_a_child_is_one_level_below_its_parent_up_to_the_limit() -> None:
    assert parent_fields(pending(depth=2), 3)["depth"] == 3
    with pytest.raises(Refused, match=r"MAM_JOB_ID, is 3 deep.*more than 3 deep; max_depth"):
        parent_fields(pending(depth=3), 3)
    with pytest.raises(Refused, match="max_depth"):
        parent_fields(pending(), 0)
