"""Makes the Nth call of a store fail with any error, for every N, in this process: on files and below SQLite."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import apsw

from tests.faults.killing import SYSTEM_CALLS

ERRORS = (errno.EIO, errno.ENOSPC, errno.EROFS, errno.EMFILE)
READING = ("read", "pread", "listdir", "scandir")
_OF_SQLITE = {errno.ENOSPC: apsw.FullError, errno.EROFS: apsw.ReadOnlyError, errno.EMFILE: apsw.CantOpenError}


class FailAt:
    """Fails at the Nth call only; `reached` reports whether there was an Nth call."""

    def __init__(self, nth: int, code: int) -> None:
        self._left = nth
        self.code = code
        self.call = ""
        self.armed = True

    def __call__(self, call: str) -> bool:
        if not self.armed:
            return False
        self._left -= 1
        if self._left == 0:
            self.call = call
        return self._left == 0

    @property
    def reached(self) -> bool:
        return self._left <= 0


@contextmanager
def calls_fail(fails: FailAt) -> Iterator[None]:
    """The system calls of the files store fail. A close that fails has closed the file."""
    real = {name: getattr(os, name) for name in (*SYSTEM_CALLS, *READING)}

    def maybe(name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            if fails(name):
                if name == "close":
                    real["close"](*arguments)
                raise OSError(fails.code, os.strerror(fails.code))
            return real[name](*arguments, **options)

        return call

    for name in real:
        setattr(os, name, maybe(name))
    try:
        yield
    finally:
        fails.armed = False
        for name, function in real.items():
            setattr(os, name, function)


@contextmanager
def writes_fail(fails: FailAt) -> Iterator[None]:
    """Calls below SQLite fail: open, read, write, sync, truncate."""
    error = _OF_SQLITE.get(fails.code, apsw.IOError)

    class File(apsw.VFSFile):
        def xRead(self, amount: int, offset: int) -> Any:
            _raise_if(fails("read"), error)
            return super().xRead(amount, offset)

        def xWrite(self, data: Any, offset: int) -> None:
            _raise_if(fails("write"), error)
            super().xWrite(data, offset)

        def xSync(self, flags: int) -> None:
            _raise_if(fails("sync"), error)
            super().xSync(flags)

        def xTruncate(self, size: int) -> None:
            _raise_if(fails("truncate"), error)
            super().xTruncate(size)

    class Disk(apsw.VFS):
        def __init__(self) -> None:
            super().__init__("failing", "unix", makedefault=True)

        def xOpen(self, name: Any, flags: Any) -> Any:
            _raise_if(fails("open"), apsw.CantOpenError)
            return File("unix", name, flags)

    disk = Disk()
    try:
        yield
    finally:
        fails.armed = False
        disk.unregister()


def _raise_if(fails: bool, error: type[Exception]) -> None:
    if fails:
        raise error("as the test wants it")
