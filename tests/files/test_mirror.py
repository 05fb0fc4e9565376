"""The record files show the database after every act, and what other programs wrote is kept."""

from __future__ import annotations

import json
from hashlib import blake2b

import pytest

from mam.errors import StoreUnavailable
from mam.stores.files.records import read_stamp
from mam.stores.files.store import FilesStore
from tests.files.conftest import StoreDir
from tests.files.invariants import check, logged


def test_a_record_ends_with_what_it_came_from(store_dir: StoreDir) -> None:
    registry = store_dir.open()
    job_id = registry.register(prompt="p", agent="codex").job.job_id
    registry.pick("codex", owner="me")
    text = store_dir.file(job_id).read_bytes()
    *_, last = json.loads(text)
    seal = json.loads(text)[last]
    assert (last, seal["epoch"], seal["version"]) == ("registry", registry.store.journal_id, 2)
    signed = text[: text.rindex(b',\n  "registry"')] + f"{seal['epoch']} {seal['version']}".encode()
    assert blake2b(signed, digest_size=16).hexdigest() == seal["digest"]
    assert read_stamp(text) is not None
    for changed in (text.replace(b"codex", b"codey", 1), text.replace(b'"version": 2', b'"version": 3'), text + b" "):
        assert read_stamp(changed) is None


def test_files_show_the_registry_after_every_act(store_dir: StoreDir) -> None:
    registry = store_dir.open()
    first = registry.register(prompt="p", agent="codex", key="k").job.job_id
    second = registry.register(prompt="q", agent="codex", after=[first]).job.job_id
    steps = (
        lambda: registry.pick("codex", owner="me"),
        lambda: registry.publish(first, event="progress", detail="half", attempt=1),
        lambda: registry.heartbeat(first, attempt=1),
        lambda: registry.next_seq(first),
        lambda: registry.release(first, attempt=1),
        lambda: registry.fail(first, reason="broken"),
        lambda: registry.retry(first),
        lambda: registry.cancel(second),
    )
    for step in steps:
        step()
        shown = store_dir.fields(first)
        shown.pop("registry")
        assert shown == registry.get(first).to_json()
        assert logged(store_dir, first) == registry.store.events(first)
    check(store_dir, registry)


def test_a_file_that_another_program_changed_is_kept_when_mam_writes_the_job(store_dir: StoreDir) -> None:
    registry = store_dir.open()
    job_id = registry.register(prompt="p", agent="codex").job.job_id
    store_dir.edit(job_id, lambda fields: fields.update(prompt="other words"))
    text = store_dir.file(job_id).read_bytes()
    registry.cancel(job_id)
    (kept,) = (store_dir.path / ".store" / "aside").iterdir()
    assert kept.read_bytes() == text
    assert store_dir.fields(job_id)["prompt"] == "p"
    check(store_dir, registry)


@pytest.mark.parametrize("left", ["old", "gone", "empty"])
def test_files_that_a_killed_writer_left_behind_are_written_by_the_next_act(store_dir: StoreDir, left: str) -> None:
    """The database has committed, and the files do not show it yet."""
    registry = store_dir.open()
    job_id = registry.register(prompt="p", agent="codex").job.job_id
    files = [store_dir.file(job_id), store_dir.path / f"{job_id}.events.log"]
    registry.publish(job_id, event="progress")
    old = [path.read_bytes() for path in files]
    registry.complete(job_id)
    store_dir.close()
    for path, text in zip(files, old, strict=True):
        path.unlink()
        if left != "gone":
            path.write_bytes(text if left == "old" else b"")
    other = store_dir.open()
    other.register(prompt="another", agent="codex")
    assert store_dir.fields(job_id)["status"] == "completed"
    check(store_dir, other)


def test_a_process_that_works_long_leaves_little_to_look_through(
    store_dir: StoreDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mam.stores.files.store.SAVE_EVERY", 10)
    store = store_dir.open().store
    assert isinstance(store, FilesStore)
    for _ in range(25):
        place_registry(store_dir, store)
    assert store._rows("mirrored upto")[0][0] >= 20


def place_registry(_place: StoreDir, store: FilesStore) -> None:
    from mam.registry import Registry

    Registry(store).register(prompt="p", agent="codex")


def test_a_database_that_is_older_than_its_files_is_refused(store_dir: StoreDir) -> None:
    registry = store_dir.open()
    job_id = registry.register(prompt="p", agent="codex").job.job_id
    store = registry.store
    assert isinstance(store, FilesStore)
    registry.pick("codex", owner="me")
    store._in_transaction(lambda: store._run("UPDATE job SET version = 1, status = 'pending'"))
    with pytest.raises(StoreUnavailable, match="`mam rebuild`"):
        registry.pick("codex", owner="me")
    assert store_dir.fields(job_id)["status"] == "running"
    assert "mam rebuild" in store.problems()[0].problem
