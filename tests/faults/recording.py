"""Records the file system calls of a process with strace, in order: the input of every simulated power cut.

It records only below one root. Files and directories have numbers, as on a disk, so a renamed file is still the same
file.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from mam.util.frozen import Frozen
from tests.needs import program

CALLS = (
    "open,openat,creat,read,pread64,write,pwrite64,writev,pwritev,pwritev2,lseek,fsync,fdatasync,sync_file_range,rename,"
    "renameat,renameat2,unlink,unlinkat,rmdir,mkdir,mkdirat,ftruncate,truncate,fallocate,close,dup,dup2,dup3,link,linkat,"
    "symlink,symlinkat,copy_file_range,sendfile"
)
ROOT = 0
"""The number of the directory under which everything happens; it exists from the beginning."""


class Created(Frozen):
    """A name in a directory, for a file or directory that is new."""

    directory: int
    name: str
    number: int
    is_directory: bool


class Renamed(Frozen):
    directory: int
    name: str
    to: str


class Removed(Frozen):
    directory: int
    name: str


class Written(Frozen):
    number: int
    offset: int
    data: bytes


class Truncated(Frozen):
    number: int
    size: int


class Synced(Frozen):
    """A file's data and size, or a directory's names."""

    number: int


class Printed(Frozen):
    """An acknowledgement that another process relies on."""

    text: str


Step = Created | Renamed | Removed | Written | Truncated | Synced | Printed


def recorded(arguments: list[str], root: Path) -> list[Step]:
    """Runs a module of the tests under strace; its standard output contains the acknowledgements."""
    trace = root.parent / f"{root.name}.trace"
    command = [program("strace"), "-f", "-y", "-xx", "-s", "100000000", "-e", f"trace={CALLS}", "-o", str(trace)]
    repository = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    ran = subprocess.run(
        [*command, sys.executable, "-m", *arguments], cwd=repository, env=environment, capture_output=True, check=False
    )
    assert ran.returncode == 0, ran.stderr.decode()
    try:
        return Reader(root).read(trace)
    finally:
        trace.unlink()


_CALL = re.compile(r"^\d+ +(\w+)\((.*)\) += (-?\d+)(?:<[^>]*>)?(?: \(|$| [A-Z])", re.DOTALL)
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')


def _plain(text: str) -> str:
    return os.fsdecode(bytes.fromhex(text.replace("\\x", "")))


class Reader:
    """Follows names, descriptors and positions, so that each call becomes a step on numbered files."""

    def __init__(self, root: Path) -> None:
        self._root = str(root.resolve())
        self._names: dict[str, int] = {self._root: ROOT}
        self._open: dict[int, int] = {}
        self._at: dict[int, int] = {}
        self._appends: set[int] = set()
        self._sizes: dict[int, int] = {}
        self._last = ROOT
        self.steps: list[Step] = []

    def read(self, trace: Path) -> list[Step]:
        with open(trace, encoding="ascii") as file:
            for line in file:
                found = _CALL.match(line)
                if found and int(found[3]) >= 0:
                    self._call(found[1], found[2], int(found[3]))
        return self.steps

    def _call(self, name: str, text: str, result: int) -> None:
        if name.startswith("open"):
            self._opened(text, result)
        elif name in ("rename", "renameat", "renameat2"):
            self._renamed(*self._paths(text)[:2])
        elif name in ("unlink", "unlinkat", "rmdir"):
            self._removed(self._paths(text)[0])
        elif name in ("mkdir", "mkdirat"):
            self._made(self._paths(text)[0], is_directory=True)
        elif name in ("link", "linkat", "symlink", "symlinkat", "truncate"):
            assert self._root not in "".join(self._paths(text)), f"the reader does not know {name}"
        else:
            self._on_descriptor(name, text, int(text.split("<")[0].split(",")[0]), result)

    def _on_descriptor(self, name: str, text: str, descriptor: int, result: int) -> None:
        if name == "write" and descriptor == 1:
            self.steps.append(Printed(text=_plain(_TEXT.findall(text)[0])))
        if descriptor not in self._open:
            return
        number = self._open[descriptor]
        if name in ("write", "pwrite64"):
            self._wrote(name, text, descriptor, result)
        elif name in ("fsync", "fdatasync"):
            self.steps.append(Synced(number=number))
        elif name == "read":
            self._at[descriptor] += result
        elif name == "lseek":
            self._at[descriptor] = result
        elif name == "ftruncate":
            self._sizes[number] = size = int(text.rsplit(",", 1)[1])
            self.steps.append(Truncated(number=number, size=size))
        elif name == "close":
            del self._open[descriptor]
        elif name not in ("pread64",):
            raise AssertionError(f"the reader does not know {name}")

    def _opened(self, text: str, descriptor: int) -> None:
        path = self._paths(text)[0]
        self._open.pop(descriptor, None)
        if path != self._root and not path.startswith(f"{self._root}/"):
            return
        flags = text.rpartition('"')[2]
        if path not in self._names:
            assert "O_CREAT" in flags, f"{path} exists, but no recorded call made it"
            self._made(path, is_directory=False)
        number = self._open[descriptor] = self._names[path]
        self._at[descriptor] = 0
        (self._appends.add if "O_APPEND" in flags else self._appends.discard)(descriptor)
        if "O_TRUNC" in flags and self._sizes.get(number):
            self._sizes[number] = 0
            self.steps.append(Truncated(number=number, size=0))

    def _wrote(self, name: str, text: str, descriptor: int, result: int) -> None:
        number = self._open[descriptor]
        data = bytes.fromhex(_TEXT.findall(text)[0].replace("\\x", ""))[:result]
        if name == "pwrite64":
            offset = int(text.rsplit(",", 1)[1])
        else:
            offset = self._sizes[number] if descriptor in self._appends else self._at[descriptor]
            self._at[descriptor] = offset + len(data)
        self._sizes[number] = max(self._sizes[number], offset + len(data))
        self.steps.append(Written(number=number, offset=offset, data=data))

    def _made(self, path: str, *, is_directory: bool) -> None:
        if not path.startswith(f"{self._root}/"):
            return
        self._last += 1
        self._names[path] = self._last
        self._sizes[self._last] = 0
        directory, name = self._place(path)
        self.steps.append(Created(directory=directory, name=name, number=self._last, is_directory=is_directory))

    def _renamed(self, path: str, to: str) -> None:
        if not path.startswith(f"{self._root}/"):
            return
        (directory, name), (there, new) = self._place(path), self._place(to)
        assert directory == there, "a rename to another directory"
        self._names[to] = self._names.pop(path)
        self.steps.append(Renamed(directory=directory, name=name, to=new))

    def _removed(self, path: str) -> None:
        if path.startswith(f"{self._root}/"):
            directory, name = self._place(path)
            del self._names[path]
            self.steps.append(Removed(directory=directory, name=name))

    def _place(self, path: str) -> tuple[int, str]:
        directory, name = os.path.split(path)
        return self._names[directory], name

    def _paths(self, text: str) -> list[str]:
        """The paths of a call, with the name of the open directory before relative ones."""
        paths = []
        for found in re.finditer(r'(?:(?:AT_FDCWD|\d+)<((?:\\x[0-9a-f]{2})*)>, )?"((?:\\x[0-9a-f]{2})*)"', text):
            path = _plain(found[2])
            paths.append(os.path.normpath(os.path.join(_plain(found[1] or ""), path)))
        return paths
