"""`mam worker` beside a test, on files or SQLite."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.cli.command import Mam
from tests.waiting import await_that
from tests.work.support import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(params=["files", "sqlite"], name="mam")
def mam_fixture(request: pytest.FixtureRequest, tmp_path: Path) -> Mam:
    return made(tmp_path, request.param)


@pytest.fixture(name="plain")
def plain_fixture(tmp_path: Path) -> Mam:
    return made(tmp_path, "files")


def made(folder: Path, kind: str) -> Mam:
    here, home = folder / "project", folder / "home"
    here.mkdir()
    home.mkdir()
    mam = Mam(here, home)
    mam.env["PATH"] = f"{os.path.dirname(sys.executable)}:{mam.env['PATH']}"
    if kind == "sqlite":
        mam.env["MAM_STORE"] = f"sqlite://{folder}/jobs.db"
    return mam


class Working:
    """A worker beside the test; ended with -9 if the test has not done so."""

    def __init__(self, mam: Mam, *words: str) -> None:
        self.process = mam.start("worker", *words)

    def __enter__(self) -> subprocess.Popen[bytes]:
        return self.process

    def __exit__(self, *_error: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


def heard(process: subprocess.Popen[bytes], words: bytes) -> None:
    """Until it has said so."""
    assert process.stderr is not None
    seen = b""
    while words not in seen:
        part = os.read(process.stderr.fileno(), 4096)
        assert part, seen
        seen += part


def ended(mam: Mam, job: str) -> dict[str, object]:
    assert mam("wait", job, "--timeout", str(int(PATIENCE))).code in (0, 7, 8)
    return mam.record(job)


def workers_of(pid: int) -> list[int]:
    """The living workers that this process has started."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as words, open(f"/proc/{name}/stat", encoding="ascii") as stat:
                above = int(stat.read().rpartition(")")[2].split()[1])
                if above == pid and b"worker" in words.read().split(b"\0"):
                    found.append(int(name))
        except OSError:
            continue
    return found


@pytest.fixture(autouse=True)
def no_process_left(tmp_path: Path) -> Iterator[None]:
    """Detached workers end with their jobs; the test waits for them, by the home that only they have."""
    yield
    mark = f"HOME={tmp_path / 'home'}".encode()

    def left() -> bool:
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    if mark in file.read().split(b"\0"):
                        return True
            except OSError:
                continue
        return False

    await_that(lambda: not left(), "a process is left behind")
