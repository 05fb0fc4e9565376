"""Real file systems in a file that lose their power: ext4 and xfs, shut down by their own ioctl.

It forgets everything that was not synced, as a cut would; but both file systems are kinder than they need be, which is
why `power.py` exists beside this.
"""

from __future__ import annotations

import fcntl
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mam.registry import Registry
from tests.faults.acting import Life
from tests.faults.homes import Home
from tests.faults.judging import check_store
from tests.faults.killing import forked

KINDS = {"ext4": (["mkfs.ext4", "-q", "-F"], 48), "xfs": (["mkfs.xfs", "-q", "-f"], 320)}
"""How each is made, and how many megabytes it needs at least."""

PATIENCE = 60.0
SHUTDOWN = 0x8004587D
FORGET_WHAT_IS_NOT_SYNCED = 2
SEARCHED = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def why_not(kind: str) -> str | None:
    """What is missing here; CI has all of it."""
    if os.geteuid() != 0:
        return "mounting a file system needs root"
    maker = KINDS[kind][0][0]
    return None if shutil.which(maker, path=SEARCHED) else f"{maker} is missing: apt-get install e2fsprogs xfsprogs"


class Disk:
    def __init__(self, folder: Path, kind: str) -> None:
        self._image, self.path = folder / "disk", folder / "mounted"
        self.path.mkdir()
        maker, megabytes = KINDS[kind]
        with open(self._image, "wb") as file:
            file.truncate(megabytes * 1024 * 1024)
        program = shutil.which(maker[0], path=SEARCHED)
        assert program
        subprocess.run([program, *maker[1:], str(self._image)], check=True)
        self.mount()

    def mount(self) -> None:
        subprocess.run(["mount", "-o", "loop", str(self._image), str(self.path)], check=True)

    def unmount(self) -> None:
        """Waits until nobody has anything open there any more: what is mounted again meanwhile is the dead one."""
        ends = time.monotonic() + PATIENCE
        while subprocess.run(["umount", str(self.path)], check=False, capture_output=True).returncode:
            assert time.monotonic() < ends, "somebody keeps the disk busy"
            time.sleep(0.05)

    def cut_power(self) -> None:
        descriptor = os.open(self.path, os.O_RDONLY)
        fcntl.ioctl(descriptor, SHUTDOWN, struct.pack("I", FORGET_WHAT_IS_NOT_SYNCED))
        os.close(descriptor)


@contextmanager
def disk_of(folder: Path, kind: str) -> Iterator[Disk]:
    disk = Disk(folder, kind)
    try:
        yield disk
    finally:
        disk.unmount()


def cut_while_it_works(home: Home, disk: Disk, seed: int) -> int:
    """One cut in the middle of a life that goes on from where the last one ended; how many entries there are now."""
    chance = random.Random(seed)
    place = disk.path / "place"
    reader, writer = os.pipe()
    child = forked()
    if child == 0:
        os.close(reader)  # else it would not notice that nobody listens any more
        _work_until_dark(home, place, seed, writer)
    os.close(writer)
    heard = 0
    with open(reader, "rb") as pipe:
        for _ in range(chance.randint(1, 6)):
            heard = int(pipe.readline() or heard)
        ends = time.monotonic() + chance.uniform(0, 0.004)
        while time.monotonic() < ends:
            pass  # between two acts, or in the middle of one
        # A machine without power acknowledges nothing. Here the process would live on, and a sync that the cut meets
        # half way may return without an error.
        os.kill(child, signal.SIGSTOP)
        _pid, status = os.waitpid(child, os.WUNTRACED)
        assert os.WIFSTOPPED(status), "the worker had failed before the cut"
        disk.cut_power()
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        for line in pipe:
            heard = int(line)
    disk.unmount()
    disk.mount()
    return _judged(home, place, heard, seed)


def _judged(home: Home, place: Path, heard: int, seed: int) -> int:
    home.make(place)
    store = home.open(place)
    try:
        check_store(home, place, store)
        entries = sum(1 for _ in store.entries(None))
        assert entries >= heard, f"seed {seed}: {heard} entries were acknowledged, {entries} are there"
        return entries
    finally:
        store.close()


def _work_until_dark(home: Home, place: Path, seed: int, writer: int) -> None:
    try:
        home.make(place)
        life = Life(Registry(home.open(place)), seed)
        while True:
            life.act()
            os.write(writer, b"%d\n" % life.entries())
    except BaseException as error:
        print(f"seed {seed}: {error!r}", file=sys.__stderr__)
        os._exit(1)
