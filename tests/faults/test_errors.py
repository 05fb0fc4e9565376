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
from tests.faults.failing import ERRORS, Once, calls_fail, writes_fail
from tests.faults.invariants import check_store, check_story, looked_at
from tests.faults.store_kinds import HOMES, Home, copied
from tests.stories import WRITERS, Cast

pytestmark = pytest.mark.timeout(1200)  # guards against hanging only, also on a loaded machine

WAYS: dict[str, Callable[[Once], AbstractContextManager[None]]] = {"call": calls_fail, "write": writes_fail}
in_every_way = pytest.mark.parametrize(
    ("home", "way"),
    [(HOMES["files"], "call"), (HOMES["files"], "write"), (HOMES["sqlite"], "write")],
    ids=["files-call", "files-write", "sqlite-write"],
)
on_every_home = pytest.mark.parametrize("home", HOMES.values(), ids=list(HOMES))


@in_every_way
@pytest.mark.parametrize("verb", WRITERS)
def test_an_error_at_any_call_leaves_the_act_done_or_not_done(folder: Path, home: Home, way: str, verb: str) -> None:
    origin, wreck = folder / "origin", folder / "wreck"
    home.make(origin)
    store = home.open(origin)
    cast = Cast(Registry(store), "run")
    store.close()
    copied(origin, wreck)
    store = home.open(wreck)
    WRITERS[verb](Registry(store), cast)
    store.close()
    expected = looked_at(home, wreck, cast)
    codes = itertools.cycle(ERRORS)
    for nth in itertools.count(1):
        copied(origin, wreck)
        fails = Once(nth, next(codes))
        acknowledged = _in_transaction(home, wreck, verb, cast, WAYS[way](fails), fails)
        if not fails.reached:
            break
        check_story(expected, looked_at(home, wreck, cast), acknowledged=acknowledged)
    assert nth > 12, "the seam no longer reaches the calls"


def _in_transaction(
    home: Home, place: Path, verb: str, cast: Cast, failing: AbstractContextManager[None], fails: Once
) -> bool:
    """Whether it was acknowledged. Then the same store is used once more: it must have got over it."""
    with failing:
        try:
            store = home.open(place)
        except MamError as error:
            _check_told(error, fails)
            return False
        try:
            WRITERS[verb](Registry(store), cast)
            acknowledged = True
        except MamError as error:
            _check_told(error, fails)
            acknowledged = False
    assert Registry(store).register(prompt="next", agent="codex", label="others").created
    store.close()
    return acknowledged


def _check_told(error: MamError, fails: Once) -> None:
    assert error.exit_code == 9, f"{fails.call} {os.strerror(fails.code)}: {error}"
    assert "\n" not in str(error)


@on_every_home
def test_short_writes_are_finished(folder: Path, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    home.make(folder)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda descriptor, data: write(descriptor, bytes(data)[:7]))
        store = home.open(folder)
        cast = Cast(Registry(store), "run")
        store.keep_secrets(cast.running, {"auth_token": "t" * 50})
        store.close()
    assert looked_at(home, folder, cast) == []
    store = home.open(folder)
    assert store.secrets(cast.running) == {"auth_token": "t" * 50}
    store.close()


# -- syncs -------------------------------------------------------------------------------------------------------------


def test_a_failed_sync_is_never_tried_again_on_the_same_descriptor(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a failed fsync the kernel may call the pages clean; only a new descriptor can be believed."""
    home = HOMES["files"]
    home.make(folder)
    store = home.open(folder)
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
    check_store(home, folder, store)
    store.close()


@on_every_home
def test_a_failed_sync_of_sqlite_ends_the_act_and_the_connection(folder: Path, home: Home) -> None:
    """What was not synced looks whole in memory: nobody may find it in the log and build on it."""
    home.make(folder)
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
    store = home.open(folder)
    registry = Registry(store)
    registry.register(prompt="kept", agent="codex", job_id="kept")
    left[0], before = 1, len(opened)
    with pytest.raises(StoreUnavailable, match="disk"):
        registry.register(prompt="lost", agent="codex", job_id="lost")
    other = home.open(folder)
    assert [job.job_id for job in other.select(Query())] == ["kept"]
    other.close()
    assert len(opened) > before, "the descriptors whose sync failed are used on"
    assert registry.register(prompt="next", agent="codex", job_id="next").created
    assert [job.job_id for job in registry.select(Query())] == ["next", "kept"]
    store.close()
    disk.unregister()
    store = home.open(folder)
    check_store(home, folder, store)
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


@on_every_home
def test_a_disk_that_fills_up_refuses_whole_acts_and_recovers(small: Path, home: Home) -> None:
    place = small / "place"
    home.make(place)
    store = home.open(place)
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
    assert refused > 0 or (names_only and home.name == "sqlite"), "the disk never was full"
    assert registry.register(prompt="room again", agent="codex").created
    store.close()
    store = home.open(place)
    assert set(acknowledged) <= {job.job_id for job in store.select(Query())}
    check_store(home, place, store)
    store.close()


def _use_up(ballast: Path, turn: int) -> None:
    """A little more each time, by bytes and by names, until nothing is left."""
    try:
        (ballast / str(turn)).write_bytes(b"x" * 24_000)
    except OSError:
        pass
