"""Real file systems in a file that lose power: ext4 and xfs, shut down by their own ioctl.

The shutdown drops everything that was not synced, as a power cut would. Both file systems keep more than POSIX
requires, so `power.py` exists too.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import random
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from mam.registry import Registry
from tests.faults.invariants import FoldedJournal, act, check_no_problems, check_store
from tests.faults.killing import forked
from tests.faults.random_life import RandomUser
from tests.faults.store_kinds import Boot, StoreKind
from tests.needs import program
from tests.waiting import await_that

KINDS = {"ext4": (["mkfs.ext4", "-q", "-F"], 48), "xfs": (["mkfs.xfs", "-q", "-f"], 320)}
"""The program that makes each, and the megabytes that it needs at least."""

PATIENCE = 120.0
THOROUGH = 10
SHUTDOWN = 0x8004587D
FORGET_WHAT_IS_NOT_SYNCED = 2
_LIBC = ctypes.CDLL(None, use_errno=True)


def why_not() -> str | None:
    """CI has root."""
    return None if os.geteuid() == 0 else "mounting a file system needs root"


class Disk:
    """One image, mounted again after each cut. It is in memory, because the file system drops the data."""

    def __init__(self, folder: Path, kind: str) -> None:
        self._kind = kind
        image, self.path = folder / "disk", folder / "mounted"
        self.path.mkdir()
        maker, megabytes = KINDS[kind]
        with open(image, "wb") as file:
            file.truncate(megabytes * 1024 * 1024)
        subprocess.run([program(maker[0]), *maker[1:], str(image)], check=True)
        attached = subprocess.run(["losetup", "--find", "--show", str(image)], check=True, capture_output=True)
        self._device = attached.stdout.strip()
        self.mount()

    def close(self) -> None:
        self.unmount()
        subprocess.run([b"losetup", b"--detach", self._device], check=True)

    def mount(self) -> None:
        """Until it is a living one: while a process in another mount namespace still has the dead one, the kernel gives
        that back. A dead ext4 still lists its directories, so only a write tells the two apart."""

        def is_alive() -> bool:
            _called(_LIBC.mount(self._device, bytes(self.path), self._kind.encode(), 0, None), "mount")
            try:
                os.close(os.open(self.path / ".alive", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
            except OSError:
                self.unmount()
                return False
            return True

        await_that(is_alive, "a process keeps the dead disk mounted")

    def unmount(self) -> None:
        """Waits until no process has a file open there. Until then, a new mount gets the dead file system."""
        await_that(lambda: _LIBC.umount2(bytes(self.path), 0) == 0, "a process keeps the disk busy")

    def cut_power(self) -> None:
        descriptor = os.open(self.path, os.O_RDONLY)
        fcntl.ioctl(descriptor, SHUTDOWN, struct.pack("I", FORGET_WHAT_IS_NOT_SYNCED))
        os.close(descriptor)

    def write_back(self, file: Path) -> None:
        """What the kernel may do with a file's bytes whenever it likes, and with no other's: the names of the directory
        and the lengths of files stay where they are, in memory."""
        descriptor = os.open(file, os.O_RDONLY)
        _called(_LIBC.sync_file_range(descriptor, ctypes.c_int64(0), ctypes.c_int64(0), 7), "sync_file_range")
        os.close(descriptor)


def _called(result: int, name: str) -> None:
    if result:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")


@contextmanager
def disk_of(folder: Path, kind: str) -> Iterator[Disk]:
    disk = Disk(folder, kind)
    try:
        yield disk
    finally:
        disk.close()


class PowerCutSeries:
    """Repeated cuts on one store, which continues after each from what is left."""

    def __init__(self, store_kind: StoreKind, disk: Disk, seed: int) -> None:
        self._store_kind = store_kind
        self._disk = disk
        self._seed = seed
        self._place = disk.path / "place"
        self._chance = random.Random(f"outages {seed}")
        self._folded = FoldedJournal()
        self._cuts = 0

    def run(self, cuts: int) -> int:
        for self._cuts in range(1, cuts + 1):
            try:
                heard = self._cut()
                self._judge(heard, thorough=self._cuts % THOROUGH == 0 or self._cuts == cuts)
            except AssertionError as error:
                raise AssertionError(f"seed {self._seed}, cut {self._cuts}: {error}") from error
        return self._cuts

    def _cut(self) -> int:
        """How many entries were acknowledged before it."""
        reader, writer = os.pipe()
        child = forked()
        if child == 0:
            os.close(reader)  # so that a write fails when the parent is gone
            self._work_until_dark(writer)
        os.close(writer)
        heard = self._folded.number
        with open(reader, "rb") as pipe:
            for _ in range(self._chance.randint(1, 3)):
                heard = int(pipe.readline() or heard)
            ends = time.monotonic() + self._chance.choice((0, 1, 2, 4)) / 1000
            while time.monotonic() < ends:
                pass  # between two acts, or in the middle of one
            # A machine without power acknowledges nothing. Here the process would live on, and a sync that the cut
            # meets half way may return without an error.
            os.kill(child, signal.SIGSTOP)
            _pid, status = os.waitpid(child, os.WUNTRACED)
            assert os.WIFSTOPPED(status), "the worker had failed before the cut"
            self._write_back()
            self._disk.cut_power()
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            for line in pipe:
                heard = int(line)
        self._disk.unmount()
        self._disk.mount()
        return heard

    def _write_back(self) -> None:
        """Syncs some files, all or none; most often the database and its log, which are written in place."""
        files = [file for file in sorted(self._place.rglob("*")) if file.is_file() and file.suffix != ".db-shm"]
        for file in files:
            if self._chance.random() < (0.7 if ".db" in file.name else 0.2):
                self._disk.write_back(file)

    def _judge(self, heard: int, *, thorough: bool) -> None:
        self._store_kind.make(self._place)
        store = self._store_kind.open(self._place, Boot(f"boot {self._cuts + 1}"))
        try:
            act(store)
            tail = self._folded.follow(store)
            assert self._folded.number >= heard, f"{heard} entries were acknowledged, {self._folded.number} are there"
            if thorough:
                folded = check_store(self._store_kind, self._place, store)
                assert folded.records == self._folded.records, "the journal has changed"
            for job_id in {entry.job_id for entry in tail}:
                self._folded.check_job(store, job_id)
            check_no_problems(store)
        finally:
            store.close()

    def _work_until_dark(self, writer: int) -> None:
        try:
            self._store_kind.make(self._place)
            store = self._store_kind.open(self._place, Boot(f"boot {self._cuts}"))
            life = RandomUser(Registry(store), f"{self._seed} {self._cuts}", self._folded)
            turns = 0
            while True:
                life.act()
                os.write(writer, b"%d\n" % life.entries())
                turns += 1
                if turns in (1, 3):
                    start_log_again(self._place / self._store_kind.database)
        except BaseException as error:
            print(f"seed {self._seed}, cut {self._cuts}: {error!r}", file=sys.__stderr__)
            os._exit(1)


def start_log_again(database: Path) -> None:
    """As any process with the database open may do. From now on, the log overwrites what is on the disk already, so
    that a page of it can be there after a cut though nothing has been synced."""
    connection = apsw.Connection(str(database))
    connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
    connection.close()
