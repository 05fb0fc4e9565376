"""Files that are no sound record: named, left alone, and in nobody's way."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mam.errors import AlreadyRegistered, StoreUnavailable, UnknownJob
from mam.stores.files.adopt import adopt
from mam.stores.files.store import FilesStore
from mam.stores.port import Query
from tests.files.conftest import Place, old_record

BAD = "bad00001"


def truncated(place: Place) -> None:
    place.file(BAD).write_text(json.dumps(old_record(BAD))[:100], encoding="utf-8")


def of_a_newer_schema(place: Place) -> None:
    place.file(BAD).write_text(json.dumps(old_record(BAD, schema_version=2)), encoding="utf-8")


def a_link(place: Place) -> None:
    elsewhere = place.path.parent / "elsewhere.json"
    elsewhere.write_text(json.dumps(old_record(BAD)), encoding="utf-8")
    place.file(BAD).symlink_to(elsewhere)


def of_another_owner(place: Place) -> None:
    place.file(BAD).write_text(json.dumps(old_record(BAD)), encoding="utf-8")
    os.chown(place.file(BAD), 12345, -1)


def written(text: str) -> Callable[[Place], None]:
    return lambda place: (place.file(BAD).write_text(text, encoding="utf-8"), None)[1]


CASES: dict[str, tuple[Callable[[Place], None], str]] = {
    "truncated": (truncated, "not whole"),
    "empty": (written(""), "empty"),
    "not JSON": (written("hello"), "not whole, valid JSON"),
    "not an object": (written("[1]"), "not a JSON object"),
    "NaN": (written(json.dumps(old_record(BAD)).replace("3600", "NaN")), "not whole, valid JSON"),
    "too deep": (written("[" * 200_000), "not whole, valid JSON"),
    "a newer schema": (of_a_newer_schema, "newer"),
    "a wrong type": (written(json.dumps(old_record(BAD, timeout_sec="long"))), "timeout_sec"),
    "another job's": (written(json.dumps(old_record("other001"))), "other001"),
    "half a surrogate pair": (written(json.dumps(old_record(BAD, odd="\ud800"))), "surrogate"),
    "a directory": (lambda place: place.file(BAD).mkdir(), "directory"),
    "a link": (a_link, "link"),
    "a pipe": (lambda place: os.mkfifo(place.file(BAD)), "regular file"),
}
if os.geteuid() == 0:
    CASES["another owner's"] = (of_another_owner, "another user")


@pytest.mark.parametrize("case", CASES)
def test_a_bad_file_is_named_and_left_alone(place: Place, case: str) -> None:
    make, problem = CASES[case]
    registry = place.open()
    good = registry.register(prompt="good", agent="codex").job.job_id
    make(place)
    before = place.snapshot()

    assert [job.job_id for job in registry.select(Query())] == [good]
    problems = registry.store.problems()
    assert [found.file for found in problems] == [f"{BAD}.json"]
    assert problem in problems[0].problem
    with pytest.raises(UnknownJob):
        registry.cancel(BAD)
    with pytest.raises(AlreadyRegistered):
        registry.register(prompt="p", agent="codex", job_id=BAD)
    store = registry.store
    assert isinstance(store, FilesStore)
    (outcome,) = adopt(store, [BAD])
    assert (outcome.outcome, problem in str(outcome.why)) == ("unreadable", True)
    assert place.snapshot() == before

    claimed = registry.pick("codex", owner="me")
    assert claimed is not None
    assert claimed.job_id == good


@pytest.mark.parametrize("case", CASES)
def test_a_bad_file_that_is_there_before_the_database_is_left_alone(place: Place, case: str) -> None:
    make, problem = CASES[case]
    make(place)
    before = place.snapshot()
    registry = place.open()
    assert registry.register(prompt="good", agent="codex").job.number == 1
    assert problem in registry.store.problems()[0].problem
    assert {name: data for name, data in place.snapshot().items() if name in before} == before


def test_a_record_file_that_breaks_stops_nothing(place: Place) -> None:
    registry = place.open()
    first = registry.register(prompt="first", agent="codex").job.job_id
    whole = place.file(first).read_bytes()
    place.file(first).write_bytes(whole[:50])
    assert "not whole" in registry.store.problems()[0].problem
    place.file(first).write_bytes(whole)
    assert registry.store.problems() == []
    place.file(first).write_bytes(b"")
    claimed = registry.pick("codex", owner="me")
    assert claimed is not None
    assert claimed.job_id == first
    assert place.fields(first)["status"] == "running"
    assert registry.store.problems() == []


def test_a_name_that_is_no_id_is_no_record(place: Place) -> None:
    (place.path / "not an id.json").write_text("{}", encoding="utf-8")
    (place.path / "notes.txt").write_text("mine", encoding="utf-8")
    registry = place.open()
    assert list(registry.select(Query())) == []
    assert registry.store.problems() == []


def test_a_problem_that_is_gone_is_forgotten(place: Place) -> None:
    truncated(place)
    registry = place.open()
    assert list(registry.select(Query())) == []
    assert len(registry.store.problems()) == 1
    place.file(BAD).unlink()
    assert list(registry.select(Query())) == []
    assert registry.store.problems() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_directory_of_another_user_is_refused(place: Place) -> None:
    os.chown(place.path, 12345, -1)
    with pytest.raises(StoreUnavailable, match="another user"):
        place.open()


def test_a_directory_that_everybody_can_write_is_refused(place: Place) -> None:
    place.path.chmod(0o777)
    with pytest.raises(StoreUnavailable, match="everybody"):
        place.open()


def test_a_file_in_the_place_of_the_directory(tmp_path: Path) -> None:
    (tmp_path / "jobs").write_text("", encoding="utf-8")
    with pytest.raises(StoreUnavailable, match="Not a directory"):
        FilesStore(str(tmp_path / "jobs"))
