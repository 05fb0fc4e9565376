"""The record files show the database after every act, and what other programs wrote is kept."""

from __future__ import annotations

import json
from hashlib import blake2b

import pytest

from mam.errors import StoreUnavailable
from mam.stores.files.records import read_stamp
from mam.stores.files.store import FilesStore
from tests.files.conftest import Place
from tests.files.invariants import check, logged


def test_a_record_ends_with_what_it_came_from(place: Place) -> None:
    registry = place.open()
    job_id = registry.register(prompt="p", agent="codex").job.job_id
    registry.pick("codex", owner="me")
    text = place.file(job_id).read_bytes()
    *_, last = json.loads(text)
    seal = json.loads(text)[last]
    assert (last, seal["epoch"], seal["version"]) == ("registry", registry.store.journal_id, 2)
    signed = text[: text.rindex(b',\n  "registry"')] + f"{seal['epoch']} {seal['version']}".encode()
    assert blake2b(signed, digest_size=16).hexdigest() == seal["digest"]
    assert read_stamp(text) is not None
    for changed in (text.replace(b"codex", b"codey", 1), text.replace(b'"version": 2', b'"version": 3'), text + b" "):
        assert read_stamp(changed) is None


def test_files_show_the_registry_after_every_act(place: Place) -> None:
    registry = place.open()
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
        shown = place.fields(first)
        shown.pop("registry")
        assert shown == registry.get(first).to_json()
        assert logged(place, first) == registry.store.events(first)
    check(place, registry)


def test_a_file_that_another_program_changed_is_kept_when_mam_writes_the_job(place: Place) -> None:
    registry = place.open()
    job_id = registry.register(prompt="p", agent="codex").job.job_id
    place.edit(job_id, lambda fields: fields.update(prompt="other words"))
    text = place.file(job_id).read_bytes()
    registry.cancel(job_id)
    (kept,) = (place.path / ".store" / "aside").iterdir()
    assert kept.read_bytes() == text
    assert place.fields(job_id)["prompt"] == "p"
    check(place, registry)


@pytest.mark.parametrize("left", ["old", "gone", "empty"])
def test_files_that_a_killed_writer_left_behind_are_written_by_the_next_act(place: Place, left: str) -> None:
    """The database has committed, and the files do not show it yet."""
    registry = place.open()
    job_id = registry.register(prompt="p", agent="codex").job.job_id
    files = [place.file(job_id), place.path / f"{job_id}.events.log"]
    registry.publish(job_id, event="progress")
    old = [path.read_bytes() for path in files]
    registry.complete(job_id)
    place.close()
    for path, text in zip(files, old, strict=True):
        path.unlink()
        if left != "gone":
            path.write_bytes(text if left == "old" else b"")
    other = place.open()
    other.register(prompt="another", agent="codex")
    assert place.fields(job_id)["status"] == "completed"
    check(place, other)


def test_a_process_that_works_long_leaves_little_to_look_through(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mam.stores.files.store.SAVED_EVERY", 10)
    store = place.open().store
    assert isinstance(store, FilesStore)
    for _ in range(25):
        place_registry(place, store)
    assert store._rows("mirrored upto")[0][0] >= 20


def place_registry(_place: Place, store: FilesStore) -> None:
    from mam.registry import Registry

    Registry(store).register(prompt="p", agent="codex")


def test_a_database_that_is_older_than_its_files_is_refused(place: Place) -> None:
    registry = place.open()
    job_id = registry.register(prompt="p", agent="codex").job.job_id
    store = registry.store
    assert isinstance(store, FilesStore)
    registry.pick("codex", owner="me")
    store._act(lambda: store._run("UPDATE job SET version = 1, status = 'pending'"))
    with pytest.raises(StoreUnavailable, match="`mam rebuild`"):
        registry.pick("codex", owner="me")
    assert place.fields(job_id)["status"] == "running"
    assert "mam rebuild" in store.problems()[0].problem
