"""A disk that is full, read-only or failing: one clear error, nothing changed, and all is well when it recovers."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mam.errors import StoreReadOnly, StoreUnavailable
from mam.jobs.status import Status
from mam.registry import Registry
from mam.stores.port import Query
from tests.disks import fill
from tests.files.conftest import Place
from tests.files.invariants import check


def test_a_full_disk_refuses_acts_whole_and_recovers_when_there_is_room(small_disk: Path) -> None:
    place = Place(small_disk / "jobs")
    registry = place.open()
    running = registry.register(prompt="p", agent="codex").job.job_id
    assert registry.pick("codex", owner="me") is not None
    ballast = fill(small_disk)
    acts: list[Callable[[], object]] = [
        lambda: registry.register(prompt="x" * 10_000, agent="codex"),
        lambda: registry.complete(running, attempt=1, result="y" * 10_000),
        lambda: place.open().register(prompt="z" * 10_000, agent="codex"),
    ]
    before = place.snapshot()
    for act in acts:
        with pytest.raises(StoreUnavailable, match=r"No space left|full"):
            act()
        after = place.snapshot()
        assert {name: after[name] for name in before} == before
    assert [job.job_id for job in place.open().select(Query())] == [running]
    assert registry.explain(running)[0].status is Status.RUNNING
    ballast.unlink()
    assert registry.complete(running, attempt=1, result="y").status is Status.COMPLETED
    assert registry.register(prompt="again", agent="codex").created
    check(place, place.open())
    place.close()


def test_a_read_only_registry_can_be_read_and_says_why_it_cannot_be_written(small_disk: Path) -> None:
    place = Place(small_disk / "jobs")
    job_id = place.open().register(prompt="p", agent="codex").job.job_id
    place.close()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    try:
        registry = place.open()
        assert registry.get(job_id[:6]).status is Status.PENDING
        assert [job.job_id for job in registry.select(Query())] == [job_id]
        assert registry.store.problems() == []
        assert "next one" in " ".join(registry.explain(job_id)[1])
        with pytest.raises(StoreReadOnly, match="Read-only"):
            registry.pick("codex", owner="me")
    finally:
        place.close()
        subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)


def failing(name: str, code: int, nth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nth call of an os function fails, as strace would make it; the calls before and after do not."""
    real: Callable[..., Any] = getattr(os, name)
    left = [nth]

    def maybe(*arguments: Any, **options: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            raise OSError(code, os.strerror(code))
        return real(*arguments, **options)

    monkeypatch.setattr(os, name, maybe)


@pytest.mark.parametrize("call", ["open", "write", "fsync", "fdatasync", "rename", "utime"])
@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EMFILE])
def test_a_call_that_fails_leaves_the_act_done_or_not_done(
    place: Place, monkeypatch: pytest.MonkeyPatch, call: str, code: int
) -> None:
    job_id = place.open().register(prompt="p", agent="codex").job.job_id
    for nth in range(1, 12):
        registry = place.open()
        status = registry.get(job_id).status
        with monkeypatch.context() as patch:
            failing(call, code, nth, patch)
            try:
                done = _next(registry, job_id, status)
            except StoreUnavailable:  # and nothing else may reach the user
                done = None
        registry = place.open()
        now = registry.get(job_id).status
        assert now is (done or status) or (done is None and now is not status)
        check(place, registry)


def _next(registry: Registry, job_id: str, status: Status) -> Status:
    if status is Status.PENDING:
        claimed = registry.pick("codex", owner="me")
        assert claimed is not None
        return claimed.status
    return registry.release(job_id).status


def test_short_writes_are_finished(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, bytes(data)[:7]))
    registry = place.open()
    job_id = registry.register(prompt="whole", agent="codex").job.job_id
    registry.complete(job_id)
    monkeypatch.undo()
    check(place, place.open())


def test_a_failed_sync_is_not_tried_again_on_the_same_descriptor(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a failed fsync the kernel may call the pages clean; only a new descriptor can be believed."""
    registry = place.open()
    registry.register(prompt="p", agent="codex")
    synced: list[int] = []
    sync = os.fdatasync

    def fail_once(descriptor: int) -> None:
        synced.append(descriptor)
        if len(synced) == 1:
            raise OSError(errno.EIO, "Input/output error")
        sync(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", fail_once)
        with pytest.raises(StoreUnavailable, match="Input/output"):
            registry.register(prompt="lost", agent="codex")
        assert len(synced) == 1
        assert registry.register(prompt="kept", agent="codex").created
    assert [job.prompt for job in place.open().select(Query())] == ["kept", "p"]


def test_what_a_full_disk_refused_is_taken_from_the_disk_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its frame may be there already, and would be an act that has happened after a power cut."""
    registry = place.open()
    registry.register(prompt="p", agent="codex")
    journal = place.path / ".store" / "journal.log"
    before, sizes = journal.stat().st_size, list[int]()
    sync = os.fdatasync

    def note(descriptor: int) -> None:
        sync(descriptor)
        sizes.append(journal.stat().st_size)

    def refuse(*_arguments: object, **_more: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", note)
        patch.setattr(os, "utime", refuse)  # of the record that is made meanwhile
        with pytest.raises(StoreUnavailable, match="No space"):
            registry.register(prompt="lost", agent="codex")
    assert sizes == [before]
    assert [job.prompt for job in place.open().select(Query())] == ["p"]


def test_segments_rotate_and_the_journal_reads_on(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mam.stores.files.journal.SEGMENT_LIMIT", 4000)
    registry, other = place.open(), place.open()
    first = registry.register(prompt="p", agent="codex").job.job_id
    cursor = registry.store.end()
    for turn in range(20):
        (registry if turn % 2 else other).register(prompt=f"p{turn}", agent="codex")
    segments = sorted(path.name for path in (place.path / ".store").glob("journal*.log"))
    assert len(segments) > 3
    assert segments[-1] == "journal.log"
    assert [entry.number for entry in other.store.entries(None)] == list(range(1, 22))
    assert [entry.number for entry in registry.store.entries(cursor)] == list(range(2, 22))
    assert next(iter(registry.store.entries(None))).job_id == first
    check(place, place.open())
