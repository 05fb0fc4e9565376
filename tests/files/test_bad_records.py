"""Files that are no valid record: mam names them, leaves them alone and works around them."""

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
from tests.files.conftest import StoreDir, old_record

BAD = "bad00001"


def truncated(store_dir: StoreDir) -> None:
    store_dir.file(BAD).write_text(json.dumps(old_record(BAD))[:100], encoding="utf-8")


def of_a_newer_schema(store_dir: StoreDir) -> None:
    store_dir.file(BAD).write_text(json.dumps(old_record(BAD, schema_version=2)), encoding="utf-8")


def a_link(store_dir: StoreDir) -> None:
    elsewhere = store_dir.path.parent / "elsewhere.json"
    elsewhere.write_text(json.dumps(old_record(BAD)), encoding="utf-8")
    store_dir.file(BAD).symlink_to(elsewhere)


def of_another_owner(store_dir: StoreDir) -> None:
    store_dir.file(BAD).write_text(json.dumps(old_record(BAD)), encoding="utf-8")
    os.chown(store_dir.file(BAD), 12345, -1)


def written(text: str) -> Callable[[StoreDir], None]:
    return lambda store_dir: (store_dir.file(BAD).write_text(text, encoding="utf-8"), None)[1]


CASES: dict[str, tuple[Callable[[StoreDir], None], str]] = {
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
    "a directory": (lambda store_dir: store_dir.file(BAD).mkdir(), "directory"),
    "a link": (a_link, "link"),
    "a pipe": (lambda store_dir: os.mkfifo(store_dir.file(BAD)), "regular file"),
}
if os.geteuid() == 0:
    CASES["another owner's"] = (of_another_owner, "another user")


@pytest.mark.parametrize("case", CASES)
def test_a_bad_file_is_named_and_left_alone(store_dir: StoreDir, case: str) -> None:
    make, problem = CASES[case]
    registry = store_dir.open()
    good = registry.register(prompt="good", agent="codex").job.job_id
    make(store_dir)
    before = store_dir.snapshot()

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
    assert store_dir.snapshot() == before

    claimed = registry.pick("codex", owner="me")
    assert claimed is not None
    assert claimed.job_id == good


@pytest.mark.parametrize("case", CASES)
def test_a_bad_file_that_is_there_before_the_database_is_left_alone(store_dir: StoreDir, case: str) -> None:
    make, problem = CASES[case]
    make(store_dir)
    before = store_dir.snapshot()
    registry = store_dir.open()
    assert registry.register(prompt="good", agent="codex").job.number == 1
    assert problem in registry.store.problems()[0].problem
    assert {name: data for name, data in store_dir.snapshot().items() if name in before} == before


def test_a_record_file_that_breaks_stops_nothing(store_dir: StoreDir) -> None:
    registry = store_dir.open()
    first = registry.register(prompt="first", agent="codex").job.job_id
    whole = store_dir.file(first).read_bytes()
    store_dir.file(first).write_bytes(whole[:50])
    assert "not whole" in registry.store.problems()[0].problem
    store_dir.file(first).write_bytes(whole)
    assert registry.store.problems() == []
    store_dir.file(first).write_bytes(b"")
    claimed = registry.pick("codex", owner="me")
    assert claimed is not None
    assert claimed.job_id == first
    assert store_dir.fields(first)["status"] == "running"
    assert registry.store.problems() == []


def test_a_name_that_is_no_id_is_no_record(store_dir: StoreDir) -> None:
    (store_dir.path / "not an id.json").write_text("{}", encoding="utf-8")
    (store_dir.path / "notes.txt").write_text("mine", encoding="utf-8")
    registry = store_dir.open()
    assert list(registry.select(Query())) == []
    assert registry.store.problems() == []


def test_a_problem_that_is_gone_is_forgotten(store_dir: StoreDir) -> None:
    truncated(store_dir)
    registry = store_dir.open()
    assert list(registry.select(Query())) == []
    assert len(registry.store.problems()) == 1
    store_dir.file(BAD).unlink()
    assert list(registry.select(Query())) == []
    assert registry.store.problems() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_directory_of_another_user_is_refused(store_dir: StoreDir) -> None:
    os.chown(store_dir.path, 12345, -1)
    with pytest.raises(StoreUnavailable, match="another user"):
        store_dir.open()


def test_a_world_writable_directory_is_rejected(store_dir: StoreDir) -> None:
    store_dir.path.chmod(0o777)
    with pytest.raises(StoreUnavailable, match="every user"):
        store_dir.open()


def test_a_file_in_the_place_of_the_directory(tmp_path: Path) -> None:
    (tmp_path / "jobs").write_text("", encoding="utf-8")
    with pytest.raises(StoreUnavailable, match="Not a directory"):
        FilesStore(str(tmp_path / "jobs"))
