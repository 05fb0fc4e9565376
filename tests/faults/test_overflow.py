"""An inbox changes faster than the kernel's queue of events allows: the watcher finds every file all the same."""

from __future__ import annotations

import ctypes
import os
import signal
import struct
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mam.stores.port import Query
from mam.stores.sqlite.store import SqliteStore
from tests.faults.amount import DOSE
from tests.inbox.commands import WHERE, InboxCommand
from tests.waiting import await_that

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")

MOVED_TO, OVERFLOW = 0x80, 0x4000
FEW = 60


def kept_events() -> int:
    """How many events the kernel keeps for one watcher."""
    return int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())


def drops() -> int:
    """In the larger dose the files alone are more than the kernel keeps."""
    return FEW if DOSE == 1 else kept_events() + 1000


def test_every_file_is_one_job_when_the_kernel_has_lost_count(tmp_path: Path) -> None:
    inbox = InboxCommand(tmp_path)
    folder = inbox.here / "inbox" / WHERE
    folder.mkdir(parents=True)
    store = tmp_path / "jobs.sqlite"
    with watch(folder) as witness, watcher(inbox, store) as pid:
        await_that(lambda: sees(pid, folder), "nobody watches the inbox")
        os.kill(pid, signal.SIGSTOP)
        await_that(lambda: state(pid) == "T", "it was not stopped")
        overflow(folder)
        for number in range(drops()):
            drop(folder, f"{number}.prompt.md", str(number))
        assert told_last(witness) == OVERFLOW
        os.kill(pid, signal.SIGCONT)
        for number in range(drops()):
            await_taken(folder, str(number))
        assert sees(pid, folder)
        drop(folder, "late.prompt.md", "late")
        await_taken(folder, "late")
    jobs = Counter(job.prompt for job in SqliteStore(str(store)).select(Query()))
    assert jobs == Counter([*map(str, range(drops())), "late"])
    assert "Traceback" not in (tmp_path / "log").read_text()


@contextmanager
def watcher(inbox: InboxCommand, store: Path) -> Iterator[int]:
    """Its process. Its output goes to a file, because thousands of lines would fill a pipe without a reader."""
    words = ["inbox", "watch", "--concurrency", "0", "--store", f"sqlite://{store}"]
    with (
        open(inbox.here.parent / "log", "wb") as log,
        subprocess.Popen(
            [sys.executable, "-m", "mam", *words], cwd=inbox.here, env=inbox.env, stdout=log, stderr=log
        ) as process,
    ):
        try:
            yield process.pid
            process.terminate()
            assert process.wait(60) == 0
        finally:
            process.kill()


@contextmanager
def watch(folder: Path) -> Iterator[int]:
    """A watcher of the test that reads nothing. The kernel treats it like the other one."""
    library = ctypes.CDLL(None, use_errno=True)
    found: list[int] = []

    def opened() -> bool:
        found.append(library.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK))
        return found[-1] >= 0

    await_that(opened, "others of this user hold all that fs.inotify.max_user_instances allows")
    try:
        assert library.inotify_add_watch(found[-1], os.fsencode(folder), MOVED_TO) > 0
        yield found[-1]
    finally:
        os.close(found[-1])


def told_last(descriptor: int) -> int:
    """The kind of the last event that was kept."""
    kind = 0
    try:
        while told := os.read(descriptor, 1 << 16):
            while told:
                _watch, kind, _cookie, length = struct.unpack_from("iIII", told)
                told = told[16 + length :]
    except BlockingIOError:
        return kind
    return kind


def overflow(folder: Path) -> None:
    """Makes very many events that do not concern an inbox."""
    one, other = folder / ".one", folder / ".other"
    one.touch()
    for _ in range(kept_events() // 2 + 1):
        os.rename(one, other)
        os.rename(other, one)
    one.unlink()


def drop(folder: Path, name: str, content: str) -> None:
    hidden = folder / f".{name}"
    hidden.write_text(content)
    hidden.rename(folder / name)


def sees(pid: int, folder: Path) -> bool:
    """Whether the process has the directory in one of its watches."""
    line = f"ino:{folder.stat().st_ino:x} "
    return any(line in text for text in map(read, Path(f"/proc/{pid}/fdinfo").iterdir()) if "inotify" in text)


def read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""  # closed meanwhile


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def await_taken(folder: Path, name: str) -> None:
    await_that((folder / f"{name}.running.md").exists, f"{name} was never taken")
