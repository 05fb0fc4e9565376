"""Disks for one test: small ones that tests fill, and a larger one for tests that count files."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def mounted(path: Path, size: str) -> Iterator[Path]:
    """Needs root, which CI has; it is never skipped there."""
    if os.geteuid() != 0 and not os.environ.get("CI"):
        pytest.skip("mounting a file system needs root")
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", str(path)], check=True)
    try:
        yield path
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a megabyte."""
    with mounted(tmp_path, "1m") as disk:
        yield disk


@pytest.fixture
def own_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk on which no other process makes files."""
    with mounted(tmp_path, "64m") as disk:
        yield disk


def made_so_far(disk: Path) -> int:
    """How many files, directories and sockets were ever made on it: this kind of file system counts them through."""
    probe = disk / "probe"
    probe.touch()
    number = probe.stat().st_ino
    probe.unlink()
    return number


def fill(path: Path) -> Path:
    ballast = path / "ballast"
    with open(ballast, "wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):  # noqa: PT012
        while file.write(b"x" * 4096):
            pass
    return ballast
