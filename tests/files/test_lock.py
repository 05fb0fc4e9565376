"""The lock: exclusive, bounded, released with its holder, and never on two files at once."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mam.errors import StoreMissing, StoreUnavailable, UnknownJob
from mam.jobs.status import Status
from mam.registry import Registry
from mam.stores.files.lock import registry_lock
from mam.stores.files.store import FilesStore, create_files_store
from mam.stores.port import Query
from tests.files.conftest import StoreDir

HOLDER = "import fcntl, sys; file = open(sys.argv[1], 'w'); fcntl.flock(file, fcntl.LOCK_EX); print('held', flush=True)"


@contextmanager
def held_by_another_process(store_dir: StoreDir) -> Iterator[subprocess.Popen[str]]:
    """An old script that took the lock as the seed says, and keeps it."""
    command = [sys.executable, "-c", f"{HOLDER}; sys.stdin.read()", str(store_dir.path / ".lock")]
    holder = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdin is not None
    assert holder.stdout.readline() == "held\n"
    try:
        yield holder
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()
        holder.stdin.close()


def has_open(path: Path) -> bool:
    """Whether this process has the file open, so that a thread is known to wait for it."""
    descriptors = Path("/dev/fd").iterdir()
    wanted = path.stat()
    for descriptor in descriptors:
        try:
            found = os.fstat(int(descriptor.name))
        except OSError:
            continue  # the listing's own descriptor
        if (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino):
            return True
    return False


def test_a_held_lock_is_waited_for_only_so_long_and_its_holder_is_named(store_dir: StoreDir) -> None:
    registry = Registry(FilesStore(str(store_dir.path), lock_wait_seconds=0.05))
    before = store_dir.snapshot()
    with held_by_another_process(store_dir) as holder:
        with pytest.raises(StoreUnavailable, match=rf"held for 0.05 s by process {holder.pid}"):
            registry.register(prompt="p", agent="codex")
    assert store_dir.snapshot() == before


def test_the_lock_dies_with_its_holder(store_dir: StoreDir) -> None:
    with held_by_another_process(store_dir) as holder:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        assert store_dir.open().register(prompt="p", agent="codex").created


def test_the_holder_itself_may_use_the_library_inside(store_dir: StoreDir) -> None:
    registry = store_dir.open()
    with registry_lock(str(store_dir.path)):
        job_id = registry.register(prompt="p", agent="codex").job.job_id
        assert registry.set_status(job_id, Status.RUNNING).attempt == 1


def test_another_thread_of_the_same_process_has_to_wait(store_dir: StoreDir) -> None:
    registry = Registry(FilesStore(str(store_dir.path), lock_wait_seconds=0.05))
    outcomes: list[BaseException | None] = []

    def attempt() -> None:
        try:
            registry.sweep()
        except StoreUnavailable as error:
            outcomes.append(error)

    with registry_lock(str(store_dir.path)):
        thread = threading.Thread(target=attempt)
        thread.start()
        thread.join()
    assert len(outcomes) == 1


def test_a_child_process_does_not_inherit_the_lock(store_dir: StoreDir) -> None:
    """A tmux server, say, started while the lock was held."""
    with registry_lock(str(store_dir.path)):
        child = subprocess.Popen(["sleep", "600"], close_fds=False)
    try:
        assert store_dir.open().register(prompt="p", agent="codex").created
    finally:
        child.kill()
        child.wait()


def test_a_forked_child_does_not_keep_the_lock(store_dir: StoreDir) -> None:
    reader, writer = os.pipe()
    with registry_lock(str(store_dir.path)):
        child = os.fork()
        if child == 0:
            os.close(writer)
            os.read(reader, 1)  # lives until the test is over
            os._exit(0)
    os.close(reader)
    try:
        registry = Registry(FilesStore(str(store_dir.path), lock_wait_seconds=1))
        assert registry.register(prompt="p", agent="codex").created
    finally:
        os.close(writer)
        os.waitpid(child, 0)


def test_a_child_of_a_holder_that_was_killed_does_not_keep_the_lock(store_dir: StoreDir) -> None:
    """The holder cannot unlock any more, and its child has a copy of the descriptor."""
    to_child, from_test = os.pipe()
    to_test, from_child = os.pipe()
    holder = os.fork()
    if holder == 0:
        registry_lock(str(store_dir.path)).__enter__()
        if os.fork() == 0:
            os.close(from_test)
            os.write(from_child, b".")
            os.read(to_child, 1)  # lives until the test is over
            os._exit(0)
        signal.pause()
    assert os.read(to_test, 1) == b"."
    os.kill(holder, signal.SIGKILL)
    os.waitpid(holder, 0)
    try:
        registry = Registry(FilesStore(str(store_dir.path), lock_wait_seconds=1))
        assert registry.register(prompt="p", agent="codex").created
    finally:
        for descriptor in (to_child, from_test, to_test, from_child):
            os.close(descriptor)


def test_a_store_opened_before_a_fork_works_in_both(store_dir: StoreDir) -> None:
    registry = Registry(FilesStore(str(store_dir.path)))
    registry.register(prompt="before", agent="codex")
    child = os.fork()
    if child == 0:
        os._exit(0 if registry.register(prompt="child", agent="codex").job.number == 2 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert registry.register(prompt="after", agent="codex").job.number == 3


def test_a_lock_file_that_was_replaced_while_waiting_is_not_trusted(store_dir: StoreDir) -> None:
    """Deleting the registry's `.lock` must not let two holders in on two files."""
    registry = store_dir.open()
    registry.register(prompt="p", agent="codex")
    done = threading.Event()
    with held_by_another_process(store_dir) as old_holder:

        def sweep() -> None:
            registry.sweep()
            done.set()

        thread = threading.Thread(target=sweep)
        thread.start()
        while not has_open(store_dir.path / ".lock"):
            threading.Event().wait(0.001)
        (store_dir.path / ".lock").unlink()
        with held_by_another_process(store_dir):
            # The old file's lock becomes free; a process that waited for it must now wait for the new one.
            old_holder.kill()
            old_holder.wait()
            assert not done.wait(0.3)
        thread.join(timeout=30)
    assert done.is_set()


def test_a_linked_lock_file_is_not_followed(store_dir: StoreDir) -> None:
    (store_dir.path / ".lock").symlink_to(store_dir.path.parent / "elsewhere")
    with pytest.raises(StoreUnavailable, match="link"):
        store_dir.open().sweep()
    assert not (store_dir.path.parent / "elsewhere").exists()


def test_a_registry_deleted_while_open_is_missing_not_made_again(store_dir: StoreDir) -> None:
    registry = store_dir.open()
    shutil.rmtree(store_dir.path)
    with pytest.raises(StoreMissing):
        registry.sweep()
    assert not store_dir.path.exists()


def test_a_registry_removed_and_created_again_is_a_new_one(store_dir: StoreDir) -> None:
    registry = Registry(FilesStore(str(store_dir.path)))
    old = registry.register(prompt="old", agent="codex").job.job_id
    shutil.rmtree(store_dir.path)
    create_files_store(str(store_dir.path))
    new = registry.register(prompt="new", agent="codex").job
    assert new.number == 1
    with pytest.raises(UnknownJob):
        registry.get(old)
    assert [job.job_id for job in store_dir.open().select(Query())] == [new.job_id]
