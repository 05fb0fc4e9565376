"""Kills a process before its Nth step, for every N, and passes what it left to a check.

A seam defines a step: a system call or a statement of the files store, a statement of the SQLite store, or a write of
SQLite.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import apsw

from mam.stores.files import connection as files_connection
from mam.stores.files import create
from mam.stores.sqlite import database
from mam.stores.sqlite import store as sqlite

Count = Callable[[], None]
Seam = Callable[[Count], object]
"""Installs the counter so that it is called before each step. The caller keeps the result until the end."""

Work = Callable[[Callable[[str], None]], None]

SYSTEM_CALLS = (
    "open", "write", "pwrite", "fsync", "fdatasync", "rename", "replace", "link", "utime", "ftruncate", "unlink",
    "mkdir", "close",
)  # fmt: skip


def at_calls(count: Count) -> object:
    """Every call of the files store that reaches the disk, and each statement of its database."""
    for name in SYSTEM_CALLS:
        setattr(os, name, counted(getattr(os, name), count))
    return at_statements(count)


def counted(function: Callable[..., Any], count: Count) -> Callable[..., Any]:
    def step(*arguments: Any, **options: Any) -> Any:
        count()
        return function(*arguments, **options)

    return step


def at_statements(count: Count) -> object:
    """Every statement of SQLite, including those of transactions. Only in the child that will be killed."""

    class Cursor(apsw.Cursor):
        def execute(self, *given: Any, **options: Any) -> apsw.Cursor:
            count()
            return super().execute(*given, **options)

    open_database = database.open_database

    def opened(*given: Any, **options: Any) -> apsw.Connection:
        connection = open_database(*given, **options)
        connection.cursor_factory = Cursor
        return connection

    for module in (sqlite, files_connection, create):
        module.open_database = opened  # type: ignore[attr-defined]
    return opened


def at_writes(count: Count) -> object:
    """Below SQLite: every write, sync and truncation of the database and of its log."""

    class File(apsw.VFSFile):
        def xWrite(self, data: Any, offset: int) -> None:
            count()
            super().xWrite(data, offset)

        def xSync(self, flags: int) -> None:
            count()
            super().xSync(flags)

        def xTruncate(self, size: int) -> None:
            count()
            super().xTruncate(size)

    class Disk(apsw.VFS):
        def __init__(self) -> None:
            super().__init__("counted", "unix", makedefault=True)

        def xOpen(self, name: Any, flags: Any) -> Any:
            return File("unix", name, flags)

    return Disk()


def kill_points(seam: Seam, work: Work) -> Iterator[tuple[int, list[str]]]:
    """Runs `work(acknowledge)` in a child that dies before step N, for N = 1, 2, … until it lives to the end.

    Yields N and what the child had acknowledged, so that the caller can check the disk. No process may have a database
    open meanwhile: a child must not inherit it.
    """
    step, killed = 0, True
    while killed:
        step += 1
        acknowledged, killed = kill_at(seam, work, step)
        yield step, acknowledged


def kill_at(seam: Seam, work: Work, last_step: int) -> tuple[list[str], bool]:
    """What the child had acknowledged, and whether it was killed."""
    reader, writer = os.pipe()
    child = forked()
    if child == 0:
        os.close(reader)
        _be_killed(seam, work, last_step, writer)
    os.close(writer)
    with open(reader, encoding="utf-8") as pipe:
        acknowledged = pipe.read().split()
    _pid, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, f"the child failed at step {last_step}"
    if os.WIFSIGNALED(status):
        count_kill()
    return acknowledged, os.WIFSIGNALED(status)


def count_kill() -> None:
    """For a long run, which counts how often a test killed."""
    if "MAM_COUNT_KILLS" in os.environ:
        with open(os.environ["MAM_COUNT_KILLS"], "ab") as counter:
            counter.write(b".")


def forked() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the test runner has threads; the child uses none of them
        return os.fork()


def _be_killed(seam: Seam, work: Work, last_step: int, writer: int) -> None:
    left = [last_step]
    write = os.write

    def count() -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    try:
        kept = seam(count)
        work(lambda word: (write(writer, f"{word}\n".encode()), None)[1])
        del kept
    except BaseException as error:
        print(f"step {last_step}: {error!r}", file=sys.__stderr__)
        os._exit(1)
    os._exit(0)
