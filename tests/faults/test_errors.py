"""A call fails or the disk is full: mam does the act or rejects it whole, in one line, and works again afterwards."""

from __future__ import annotations

import errno
import itertools
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import apsw
import pytest

from mam.errors import MamError, StoreUnavailable
from mam.registry import Registry
from mam.stores.port import Query
from tests.faults.failing import ERRORS, FailAt, calls_fail, writes_fail
from tests.faults.invariants import check_history, check_store, looked_at
from tests.faults.store_kinds import STORE_KINDS, StoreKind, copied
from tests.sample_jobs import WRITERS, SampleJobs

pytestmark = pytest.mark.timeout(1200)  # guards against hanging only, also on a loaded machine

WAYS: dict[str, Callable[[FailAt], AbstractContextManager[None]]] = {"call": calls_fail, "write": writes_fail}
in_every_way = pytest.mark.parametrize(
    ("store_kind", "way"),
    [(STORE_KINDS["files"], "call"), (STORE_KINDS["files"], "write"), (STORE_KINDS["sqlite"], "write")],
    ids=["files-call", "files-write", "sqlite-write"],
)
on_every_store_kind = pytest.mark.parametrize("store_kind", STORE_KINDS.values(), ids=list(STORE_KINDS))


@in_every_way
@pytest.mark.parametrize("verb", WRITERS)
def test_an_error_at_any_call_leaves_the_act_done_or_not_done(
    folder: Path, store_kind: StoreKind, way: str, verb: str
) -> None:
    origin, wreck = folder / "origin", folder / "wreck"
    store_kind.make(origin)
    store = store_kind.open(origin)
    sample = SampleJobs(Registry(store), "run")
    store.close()
    copied(origin, wreck)
    store = store_kind.open(wreck)
    WRITERS[verb](Registry(store), sample)
    store.close()
    expected = looked_at(store_kind, wreck, sample)
    codes = itertools.cycle(ERRORS)
    for nth in itertools.count(1):
        copied(origin, wreck)
        fails = FailAt(nth, next(codes))
        acknowledged = _in_transaction(store_kind, wreck, verb, sample, WAYS[way](fails), fails)
        if not fails.reached:
            break
        check_history(expected, looked_at(store_kind, wreck, sample), acknowledged=acknowledged)
    assert nth > 12, "the seam no longer reaches the calls"


def _in_transaction(
    store_kind: StoreKind,
    place: Path,
    verb: str,
    sample: SampleJobs,
    failing: AbstractContextManager[None],
    fails: FailAt,
) -> bool:
    """Returns whether the act was acknowledged. Then it uses the same store again, which must have recovered."""
    with failing:
        try:
            store = store_kind.open(place)
        except MamError as error:
            _check_told(error, fails)
            return False
        try:
            WRITERS[verb](Registry(store), sample)
            acknowledged = True
        except MamError as error:
            _check_told(error, fails)
            acknowledged = False
    assert Registry(store).register(prompt="next", agent="codex", label="others").created
    store.close()
    return acknowledged


def _check_told(error: MamError, fails: FailAt) -> None:
    assert error.exit_code == 9, f"{fails.call} {os.strerror(fails.code)}: {error}"
    assert "\n" not in str(error)


@on_every_store_kind
def test_short_writes_are_finished(folder: Path, store_kind: StoreKind, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    store_kind.make(folder)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda descriptor, data: write(descriptor, bytes(data)[:7]))
        store = store_kind.open(folder)
        sample = SampleJobs(Registry(store), "run")
        store.keep_secrets(sample.running, {"auth_token": "t" * 50})
        store.close()
    assert looked_at(store_kind, folder, sample) == []
    store = store_kind.open(folder)
    assert store.secrets(sample.running) == {"auth_token": "t" * 50}
    store.close()


# -- syncs -------------------------------------------------------------------------------------------------------------


def test_a_failed_sync_is_never_tried_again_on_the_same_descriptor(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a failed fsync the kernel may call the pages clean; only a new descriptor reports the truth."""
    store_kind = STORE_KINDS["files"]
    store_kind.make(folder)
    store = store_kind.open(folder)
    registry = Registry(store)
    real = {name: getattr(os, name) for name in ("fsync", "fdatasync", "close", "open")}
    for nth in itertools.count(1):
        left, failed = [nth], set[int]()

        def sync(descriptor: int, name: str, left: list[int] = left, failed: set[int] = failed) -> None:
            assert descriptor not in failed, "tried again"
            left[0] -= 1
            if left[0] == 0:
                failed.add(descriptor)
                raise OSError(errno.EIO, "Input/output error")
            real[name](descriptor)

        def close(descriptor: int, failed: set[int] = failed) -> None:
            failed.discard(descriptor)
            real["close"](descriptor)

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", lambda descriptor, sync=sync: sync(descriptor, "fsync"))
            patch.setattr(os, "fdatasync", lambda descriptor, sync=sync: sync(descriptor, "fdatasync"))
            patch.setattr(os, "close", close)
            for _ in range(3):
                try:
                    job = registry.register(prompt="p", agent="codex").job
                    registry.publish(job.job_id, event="progress")
                except StoreUnavailable as error:
                    assert "Input/output" in str(error)  # noqa: PT017
        if left[0] > 0:
            break
    assert nth > 5
    check_store(store_kind, folder, store)
    store.close()


@on_every_store_kind
def test_a_failed_sync_of_sqlite_ends_the_act_and_the_connection(folder: Path, store_kind: StoreKind) -> None:
    """An entry that was not synced looks whole in memory. No later act may find it in the log and build on it."""
    store_kind.make(folder)
    left = [0]
    opened = list[str]()

    class File(apsw.VFSFile):
        def xSync(self, flags: int) -> None:
            left[0] -= 1
            if left[0] == 0:
                raise apsw.IOError("as the test wants it")
            super().xSync(flags)

    class Disk(apsw.VFS):
        def __init__(self) -> None:
            super().__init__("unsynced", "unix", makedefault=True)

        def xOpen(self, name: Any, flags: Any) -> Any:
            opened.append(str(name))
            return File("unix", name, flags)

    disk = Disk()
    store = store_kind.open(folder)
    registry = Registry(store)
    registry.register(prompt="kept", agent="codex", job_id="kept")
    left[0], before = 1, len(opened)
    with pytest.raises(StoreUnavailable, match="disk"):
        registry.register(prompt="lost", agent="codex", job_id="lost")
    other = store_kind.open(folder)
    assert [job.job_id for job in other.select(Query())] == ["kept"]
    other.close()
    assert len(opened) > before, "the descriptors whose sync failed are used on"
    assert registry.register(prompt="next", agent="codex", job_id="next").created
    assert [job.job_id for job in registry.select(Query())] == ["next", "kept"]
    store.close()
    disk.unregister()
    store = store_kind.open(folder)
    check_store(store_kind, folder, store)
    store.close()


# -- full disks --------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["size=1m", "size=8m,nr_inodes=40"], ids=["bytes", "inodes"])
def small(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A file system that is soon full. Needs root, which CI has; it is never skipped there."""
    if os.geteuid() != 0 and not os.environ.get("CI"):
        pytest.skip("mounting a small file system needs root")
    options = f"{request.param},mode=700"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(tmp_path)], check=True)
    try:
        yield tmp_path
    finally:
        subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)


@on_every_store_kind
def test_a_disk_that_fills_up_refuses_whole_acts_and_recovers(small: Path, store_kind: StoreKind) -> None:
    place = small / "place"
    store_kind.make(place)
    store = store_kind.open(place)
    registry = Registry(store)
    acknowledged: list[str] = []
    refused = 0
    ballast = small / "ballast"
    ballast.mkdir()
    for turn in range(60):
        _use_up(ballast, turn)
        try:
            acknowledged.append(registry.register(prompt="x" * 3000, agent="codex").job.job_id)
        except StoreUnavailable as error:
            refused += 1
            assert "\n" not in str(error)  # noqa: PT017
    for file in ballast.iterdir():
        file.unlink()
    names_only = (
        "nr_inodes"
        in subprocess.run(["findmnt", "-no", "OPTIONS", str(small)], capture_output=True, text=True, check=True).stdout
    )
    assert refused > 0 or (names_only and store_kind.name == "sqlite"), "the disk never was full"
    assert registry.register(prompt="room again", agent="codex").created
    store.close()
    store = store_kind.open(place)
    assert set(acknowledged) <= {job.job_id for job in store.select(Query())}
    check_store(store_kind, place, store)
    store.close()


def _use_up(ballast: Path, turn: int) -> None:
    """Fills the disk a little more each time, by bytes and by names, until nothing is left."""
    try:
        (ballast / str(turn)).write_bytes(b"x" * 24_000)
    except OSError:
        pass
