"""The eight invariants of the older queue's jobs, checked on the mirror in every state of a job."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from mam.inbox.mirror import TRANSITIONS, schema_problem
from tests.inbox.world import WHERE, World

if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.registry import Registry

SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "schemas" / "job_record.schema.json").read_bytes())
VALIDATOR = Draft202012Validator(SCHEMA)

ACTS: list[tuple[str, Callable[[Registry, str], object]]] = [
    ("pick", lambda registry, _job: registry.pick("inbox", owner="me")),
    ("release", lambda registry, job: registry.release(job)),
    ("pick", lambda registry, _job: registry.pick("inbox", owner="me")),
    ("fail for now", lambda registry, job: registry.fail(job, reason="git-error", retryable=True)),
    ("its time comes", lambda registry, job: registry.set_status(job, registry.get(job).status.PENDING)),
    ("pick", lambda registry, _job: registry.pick("inbox", owner="me")),
]
ENDS: dict[str, Callable[[Registry, str], object]] = {
    "succeeded": lambda registry, job: registry.complete(job),
    "failed_final": lambda registry, job: registry.fail(job, reason="no luck"),
    "called off": lambda registry, job: registry.cancel(job),
}


@pytest.mark.parametrize("end", ENDS)
def test_the_mirror_keeps_the_eight_promises_in_every_state(world: World, end: str) -> None:
    world.drop()
    inbox = world.open()
    inbox.run_cycle()
    registry, job_id = world.registry(), world.only_job().job_id
    seen = [_checked(world, job_id)]
    for _name, act in [*ACTS, ("end", ENDS[end])]:
        act(registry, job_id)
        inbox.run_cycle()
        seen.append(_checked(world, job_id))
    states = [record["state"] for record in seen]
    assert states[:-1] == ["queued", "running", "queued", "running", "failed_retryable", "queued", "running"]
    assert states[-1] == ("succeeded" if end == "succeeded" else "failed_final")
    # 4: only a return to the queue counts, and never more than once.
    assert [record["retries"] for record in seen] == [0, 0, 1, 1, 1, 2, 2, 2]
    # 3: the creation time never changes.
    assert len({record["created_at"] for record in seen}) == 1
    assert [record["updated_at"] for record in seen] == sorted(record["updated_at"] for record in seen)


def _checked(world: World, job_id: str) -> dict[str, Any]:
    record = world.mirrored(job_id)  # 1, 2 and 5 are checked there
    VALIDATOR.validate(record)
    assert record["created_at"] <= record["updated_at"]
    assert record["inbox_rel"] == f"{WHERE}/x.prompt.md"  # 7: one name, one open job
    assert (world.root / "processed" / WHERE / job_id / "prompt.md").is_file()  # 8: found by path and id
    return record


GOOD: dict[str, Any] = {
    "job_id": "0" * 32, "git_owner": "o", "repo_name": "r", "branch_name": "b", "inbox_file": "/i/x.running.md",
    "inbox_rel": "x.running.md", "state": "queued", "retries": 0, "created_at": "2026-01-01T00:00:00Z",
    "updated_at": "2026-01-01T00:00:00Z", "metadata": {},
}  # fmt: skip
SPOILT: dict[str, Any] = {
    "a short id": {"job_id": "abc"}, "capital letters": {"job_id": "A" * 32}, "no owner": {"git_owner": ""},
    "a number for a branch": {"branch_name": 5}, "another state": {"state": "aborted"},
    "a truth for a count": {"retries": True},
    "a negative count": {"retries": -1}, "free text for a time": {"created_at": "yesterday"},
    "milliseconds": {"updated_at": "2026-01-01T00:00:00.000Z"}, "no metadata": {"metadata": None},
    "a list for a path": {"processed_path": []},
}  # fmt: skip


def test_a_valid_record_passes_both_checks() -> None:
    assert schema_problem(GOOD) is None
    VALIDATOR.validate(GOOD)


@pytest.mark.parametrize("how", SPOILT)
def test_mam_and_the_schema_reject_the_same_damaged_records(how: str) -> None:
    """6: the older validator let most of these pass."""
    record = {**copy.deepcopy(GOOD), **SPOILT[how]}
    assert schema_problem(record) is not None
    assert not VALIDATOR.is_valid(record)


@pytest.mark.parametrize("name", SCHEMA["required"])
def test_nothing_may_be_missing(name: str) -> None:
    record = {field: value for field, value in GOOD.items() if field != name}
    assert schema_problem(record) is not None
    assert not VALIDATOR.is_valid(record)


def test_another_directory_is_another_job() -> None:
    assert schema_problem(GOOD, "1" * 32) is not None


def test_states_and_moves_are_those_of_the_older_queue() -> None:
    assert set(TRANSITIONS) == set(SCHEMA["properties"]["state"]["enum"])
    assert TRANSITIONS["succeeded"] == TRANSITIONS["failed_final"] == ()
