"""A store that wrote a record does not read it again, and nobody can tell the difference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mam.errors import BadRecord, UnknownJob
from mam.jobs.status import Status
from tests.files.conftest import Place, old_record

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mam.registry import Registry

ACTS: dict[str, Callable[[Registry, str], object]] = {
    "registered": lambda _registry, _job_id: None,
    "claimed": lambda registry, _job_id: registry.pick("codex", owner="me", lease_seconds=60.5),
    "told": lambda registry, job_id: registry.publish(
        job_id, event="progress", detail="정렬 \ud800", data={"deep": [{"1": (2, 3.5)}]}
    ),
    "renewed": lambda registry, job_id: registry.heartbeat(job_id, attempt=1),
    "given a number": lambda registry, job_id: registry.next_seq(job_id),
    "given back": lambda registry, job_id: registry.release(job_id, attempt=1),
    "called off": lambda registry, job_id: registry.cancel(job_id, reason="no more"),
}
"""In this order, all in one hand."""


@pytest.fixture
def registry(place: Place) -> Registry:
    return place.open()


def begun(registry: Registry) -> str:
    """A job that the store has written, and so remembers."""
    job_id = registry.register(prompt="x", agent="codex").job.job_id
    registry.publish(job_id, event="started")
    return job_id


def test_what_is_remembered_is_what_the_file_says(place: Place, registry: Registry) -> None:
    first = registry.register(prompt="first", agent="codex").job.job_id
    registry.complete(first)
    job_id = registry.register(
        prompt="x", agent="codex", after=[first], key="k", artifacts=["a"], exclusive="e"
    ).job.job_id
    for act in ACTS.values():
        act(registry, job_id)
        assert registry.get(job_id) == place.open().get(job_id)


@pytest.mark.parametrize("how", ["renamed in", "in place", "of the same length"])
def test_an_edit_of_a_record_in_hand_is_seen(place: Place, registry: Registry, how: str) -> None:
    job_id = begun(registry)
    file = place.file(job_id)
    match how:
        case "renamed in":
            place.edit(job_id, lambda fields: fields.update(prompt="other"))
        case "in place":
            file.write_bytes(file.read_bytes().replace(b'"prompt": "x"', b'"prompt": "other"'))
        case _:
            file.write_bytes(file.read_bytes().replace(b'"prompt": "x"', b'"prompt": "y"'))

    assert registry.publish(job_id, event="progress").prompt == ("y" if how == "of the same length" else "other")


def test_what_another_process_did_to_a_record_in_hand_is_seen(place: Place, registry: Registry) -> None:
    job_id = begun(registry)
    place.open().publish(job_id, event="progress")

    assert registry.publish(job_id, event="progress").last_seq == 3
    assert [event["seq"] for event in registry.events(job_id)] == [1, 2, 3]


def test_a_record_in_hand_that_is_gone_is_gone(place: Place, registry: Registry) -> None:
    job_id = begun(registry)
    place.file(job_id).unlink()

    with pytest.raises(UnknownJob):
        registry.publish(job_id, event="progress")


@pytest.mark.parametrize("what", ["link", "damage"])
def test_a_record_in_hand_that_is_none_any_more_is_refused(
    place: Place, registry: Registry, tmp_path: Path, what: str
) -> None:
    job_id = begun(registry)
    file = place.file(job_id)
    if what == "link":
        file.rename(tmp_path / "elsewhere.json")
        file.symlink_to(tmp_path / "elsewhere.json")
    else:
        file.write_bytes(file.read_bytes()[:-20])

    with pytest.raises(BadRecord):
        registry.publish(job_id, event="progress")


def test_an_old_record_is_read_until_it_has_been_rewritten(place: Place, registry: Registry) -> None:
    place.rename_in("abc12345", old_record("abc12345", auth_token="canary"))
    assert registry.get("abc12345").status is Status.PENDING
    registry.publish("abc12345", event="started")

    assert registry.store.secrets("abc12345") == {"auth_token": "canary"}
    assert "canary" not in place.file("abc12345").read_text(encoding="utf-8")
