"""A file is ingested once, when it is complete, however it arrives: by cp, mv, editors, rsync, a slow copy,
thousands."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from multiprocessing import get_context
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from mam.errors import StoreUnavailable
from mam.inbox.debounce import Debouncer
from mam.inbox.tree import Tree
from tests.faults.mounted import Disk, disk_of, why_not
from tests.inbox.world import WHERE, World, fork
from tests.needs import need
from tests.waiting import await_that

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def debouncer(world: World, seconds: float) -> Debouncer:
    (world.inbox / WHERE).mkdir(parents=True, exist_ok=True)
    return Debouncer(Tree(str(world.root)), seconds)


def ready(world: World, judge: Debouncer) -> list[str]:
    return [os.path.basename(seen.rel) for seen in judge.settled(Tree(str(world.root)).scan().prompts)]


def test_a_new_file_settles_and_an_old_one_is_taken_at_once(world: World) -> None:
    judge = debouncer(world, 3600)
    old, new = world.drop("old.prompt.md"), world.drop("new.prompt.md")
    os.utime(old, (1, 1))
    os.utime(new)
    assert ready(world, judge) == ["old.prompt.md"]
    assert judge.next_in is not None
    assert 3500 < judge.next_in <= 3600


def test_a_time_in_the_future_does_not_keep_a_file_for_ever(world: World) -> None:
    judge = debouncer(world, 0.2)
    path = world.drop()
    os.utime(path, (time.time() + 9e6, time.time() + 9e6))
    assert ready(world, judge) == []
    await_that(lambda: ready(world, judge) == ["x.prompt.md"], "it never settles")


def test_a_writer_that_stalls_is_waited_for(world: World) -> None:
    """The mtime is old enough and the file is still open, as with a copy over a connection that hangs."""
    judge = debouncer(world, 0)
    path = world.drop(content="half of")
    with open(path, "a", encoding="utf-8") as writer:
        assert ready(world, judge) == []
        writer.write(" it")
    assert ready(world, judge) == ["x.prompt.md"]
    assert path.read_text() == "half of it"


def test_a_reader_is_not_waited_for(world: World) -> None:
    judge = debouncer(world, 0)
    with open(world.drop(), encoding="utf-8"):
        assert ready(world, judge) == ["x.prompt.md"]


def test_a_file_that_changes_between_two_looks_is_not_taken(world: World) -> None:
    inbox = world.open()
    path = world.drop()
    (seen,) = inbox.tree.scan().prompts
    path.write_text("changed since")
    with inbox._ledger.locked():
        assert inbox._ingester.ingest([seen]) == []
    assert world.files("inbox") == [f"{WHERE}/x.prompt.md"]


@pytest.mark.parametrize("way", ["cp", "mv", "cp -p", "rsync -a", "rsync --inplace -a", "editor", "install"])
def test_every_way_that_a_file_comes(world: World, tmp_path: Path, way: str) -> None:
    world.settings = world.settings.replace(settle_seconds=0.2)
    if way.startswith("rsync"):
        need("rsync")
    source, folder = tmp_path / "x.prompt.md", world.inbox / WHERE
    source.write_text("do it " * 10_000)
    folder.mkdir(parents=True)
    inbox = world.open()
    if way == "editor":  # like vim: a swap file, the new text under another name, the old one aside, a rename
        (folder / ".x.prompt.md.swp").write_text("b0VIM")
        (folder / "4913").write_text("")
        (folder / "4913").unlink()
        (folder / "x.prompt.md~").write_text("old")
        source.rename(folder / "x.prompt.md")
        (folder / ".x.prompt.md.swp").unlink()
        (folder / "x.prompt.md~").unlink()
    else:
        subprocess.run([*way.split(), str(source), str(folder / "x.prompt.md")], check=True)
    await_that(
        lambda: inbox.run_cycle() > 0 and world.files("inbox") == [f"{WHERE}/x.running.md"], "it was never taken"
    )
    assert world.only_job().prompt == ("do it " * 10_000)


def _watch(folder: Path, until: int) -> None:
    from pathlib import Path

    world = World(Path(folder))
    inbox = world.open()
    ends = time.monotonic() + 60
    while len(world.files("processed")) < until and time.monotonic() < ends:
        inbox.run_cycle()


def test_three_watchers_on_one_tree_take_each_file_once(world: World) -> None:
    for number in range(90):
        world.drop(f"{number}.prompt.md", str(number))
    watchers = [get_context("spawn").Process(target=_watch, args=(world.folder, 90)) for _ in range(3)]
    for watcher in watchers:
        watcher.start()
    for watcher in watchers:
        watcher.join(120)
        assert watcher.exitcode == 0
    assert sorted(int(job.prompt) for job in world.all_jobs()) == list(range(90))
    world.steady()
    assert len(world.all_jobs()) == 90


def test_thousands_of_files_at_once_become_jobs(quick_path: Path) -> None:
    world = World(quick_path)
    folder = world.inbox / WHERE
    folder.mkdir(parents=True)
    for number in range(2000):
        (folder / f"{number}.prompt.md").write_text(str(number))
    inbox = world.open()
    while inbox.run_cycle() and inbox.waiting:
        assert not inbox.problems
    assert sorted(int(job.prompt) for job in world.all_jobs()) == list(range(2000))
    assert len(inbox.open) == 2000
    world.close()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    missing = why_not()
    if missing and not os.environ.get("CI"):
        pytest.skip(missing)
    assert missing is None, missing
    with disk_of(tmp_path, "ext4") as made:
        yield made


@pytest.mark.parametrize("kind", ["files", "sqlite"])
def test_without_power_a_file_is_still_one_job(disk: Disk, kind: str) -> None:
    """The power fails somewhere in a cycle; what was synced remains, and the next cycle completes it."""
    import random

    chance = random.Random(8)
    for cut in range(12):
        world = World(_made(disk.path / f"w{cut}"), kind)
        for name in ("x", "y"):
            world.drop(f"{name}.prompt.md", name)
        os.sync()
        child = fork()
        if child == 0:
            world.open().run_cycle()
            signal.pause()
        time.sleep(chance.random() * 0.12)  # the random moment is the point
        os.kill(child, signal.SIGSTOP)  # after the power cut the process does nothing more
        os.waitpid(child, os.WUNTRACED)
        disk.cut_power()
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        disk.unmount()
        disk.mount()
        again = World(world.folder, kind)
        again.steady()
        assert sorted(job.prompt for job in again.all_jobs()) == ["x", "y"], f"cut {cut}"
        assert again.files("inbox") == [f"{WHERE}/x.running.md", f"{WHERE}/y.running.md"]
        for job in again.all_jobs():
            assert again.mirrored(job.job_id)["state"] == "queued"
        again.close()


def test_without_power_the_copy_and_the_mirror_are_made_again(disk: Disk) -> None:
    """Copies are not synced, but the row `open` is. The copy of an ended job is synced, because nothing repairs it."""
    world = World(_made(disk.path / "world"))
    names = [f"{number}.prompt.md" for number in range(10)]
    for name in names:
        world.drop(name, f"---\npriority: 1\n---\ndo {name}\n")
    os.sync()
    inbox = world.open()
    inbox.run_cycle()
    assert len(inbox.open) == len(names)
    ended = world.all_jobs()[0].job_id
    world.registry().complete(ended)
    inbox.run_cycle()
    disk.cut_power()
    world.close()
    disk.unmount()
    disk.mount()
    again = World(world.folder)
    again.steady()
    for job in again.all_jobs():
        name = os.path.basename(str((job.inbox or {})["file"]))
        kept = again.root / "processed" / WHERE / job.job_id / "prompt.md"
        assert kept.read_text() == f"---\npriority: 1\n---\ndo {name}\n"
        assert again.mirrored(job.job_id)["state"] == ("succeeded" if job.job_id == ended else "queued")
    assert len(again.all_jobs()) == len(names)
    again.close()


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_an_unreachable_store_loses_nothing(world: World) -> None:
    inbox = world.open()
    world.drop()
    world.jobs.rename(world.folder / "away")
    with pytest.raises((StoreUnavailable, Exception), match=r"(?i)no store|No such file"):
        inbox.run_cycle()
    (world.folder / "away").rename(world.jobs)
    world.steady()
    assert world.only_job().prompt == "do it"
    assert world.files("inbox") == [f"{WHERE}/x.running.md"]


def test_without_a_watch_the_tree_is_scanned_periodically(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """No watches are left, or their queue overflowed: dropped files are still found."""
    import watchfiles

    from mam.inbox import loop
    from mam.inbox.service import InboxService

    def overrun(*_arguments: object, **_options: object) -> None:
        raise OSError(28, "inotify watch limit reached")

    monkeypatch.setattr(watchfiles, "watch", overrun)
    monkeypatch.setattr(loop, "SCAN_SECONDS", 0.05)
    registry = world.registry()
    said: list[str] = []
    watching = InboxService(world.open(registry), registry.store, None, said.append, once=False)
    thread = Thread(target=watching.run)
    thread.start()
    try:
        await_that(lambda: bool(said), "nobody said that nothing is seen")
        world.drop()
        await_that(lambda: world.files("inbox") == [f"{WHERE}/x.running.md"], "it was never found")
    finally:
        watching.stop()
        thread.join(60)
    (words,) = said
    assert words.startswith(
        "changes are not noticed at once ([Errno 28] inotify watch limit reached); mam scans the inbox"
    )
    assert not thread.is_alive()
