"""The files of the directory, accessed by descriptors: nothing here follows a link or leaves the root.

<root>/.lock                                   one lock for all acts
<root>/live_agents/<agent_id>/record.json      the records
<root>/live_agents/<agent_id>/mam.json         what mam adds to them
<root>/put_aside/                              entries that were in a record's way
"""

from __future__ import annotations

import errno
import os
import stat

from mam.errors import StoreUnavailable
from mam.util.encoding import write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

LIVE_AGENTS, RECORD, PUT_ASIDE = "live_agents", "record.json", "put_aside"
MAM_FILE = "mam.json"
SIZE_LIMIT = 1024 * 1024

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK, because opening a FIFO would wait for a writer.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class NotARecord(Exception):
    """The entry is not a file that mam reads; the text states why."""


class open_dir:  # noqa: N801 - used as a function
    """`with open_dir(name, parent) as descriptor:` opens a directory, never through a link."""

    def __init__(self, name: str, parent: int | None = None) -> None:
        self._name, self._parent = name, parent

    def __enter__(self) -> int:
        self._descriptor = os.open(self._name, _DIRECTORY, dir_fd=self._parent)
        return self._descriptor

    def __exit__(self, *_exception: object) -> None:
        os.close(self._descriptor)


def open_root(path: str) -> int | None:
    """None if it does not exist. A directory of another user is rejected, because that user controls its content."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreUnavailable(store=path, problem=error.strerror) from None
    problem = ownership_problem(os.fstat(descriptor))
    if problem is not None:
        os.close(descriptor)
        raise StoreUnavailable(store=path, problem=problem)
    return descriptor


def ownership_problem(found: os.stat_result) -> str | None:
    """Why another user may have changed the file; None if none could."""
    if found.st_uid != os.geteuid():
        return f"it belongs to another user (uid {found.st_uid})"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "other users can write it"
    return None


def read_file(entry: int, name: str) -> bytes:
    """FileNotFoundError if there is none."""
    while True:
        try:
            descriptor = os.open(name, _READ, dir_fd=entry)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise NotARecord(_cannot_open(name, error)) from None
        try:
            data = _content(descriptor, name)
        except OSError as error:
            raise NotARecord(f"{name} cannot be read: {error.strerror}") from None
        finally:
            os.close(descriptor)
        if data is not None:
            return data


def _content(descriptor: int, name: str) -> bytes | None:
    """None if the file was replaced after it was opened; the caller reads again."""
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        raise NotARecord(f"{name} is not a file")
    if found.st_nlink > 1:
        raise NotARecord(f"{name} has a second name elsewhere")
    if found.st_nlink == 0:
        return None
    problem = ownership_problem(found)
    if problem is not None:
        raise NotARecord(f"{name}: {problem}")
    if found.st_size > SIZE_LIMIT:
        raise NotARecord(f"{name} has {found.st_size:,} bytes")
    data = b""
    while piece := os.read(descriptor, SIZE_LIMIT + 1 - len(data)):
        data += piece
        if len(data) > SIZE_LIMIT:
            raise NotARecord(f"{name} has more than {SIZE_LIMIT:,} bytes")
    return data


def _cannot_open(name: str, error: OSError) -> str:
    if error.errno == errno.ELOOP:
        return f"{name} is a link"
    if error.errno == errno.ENXIO:
        return f"{name} is not a file"
    return f"{name} cannot be opened: {error.strerror}"


def write_file(entry: int, name: str, data: bytes) -> None:
    """Atomic, and durable when it returns."""
    temporary = f"{name}.{os.urandom(8).hex()}.tmp"
    descriptor = os.open(temporary, _NEW, 0o600, dir_fd=entry)
    try:
        write_all(descriptor, data)
        os.fsync(descriptor)
        os.rename(temporary, name, src_dir_fd=entry, dst_dir_fd=entry)
    except BaseException:
        os.unlink(temporary, dir_fd=entry)
        raise
    finally:
        os.close(descriptor)
    os.fsync(entry)


def sweep_temporary(entry: int) -> None:
    """Remove what killed writers left. Requires the lock: no other writer may be active."""
    for name in os.listdir(entry):
        if name.startswith((f"{RECORD}.", f"{MAM_FILE}.")) and name.endswith(".tmp"):
            os.unlink(name, dir_fd=entry)


def make_entry(parent: int, name: str) -> None:
    """Create the directory with mode 0700 if it is missing. Durable, so that a record in it is not lost."""
    try:
        os.mkdir(name, 0o700, dir_fd=parent)
        os.fsync(parent)
    except FileExistsError:
        pass


def is_directory(parent: int, name: str) -> bool:
    """Whether it is a directory of this user, and not a link to one."""
    try:
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(found.st_mode) and ownership_problem(found) is None


def put_aside(root: int, parent: int, name: str, label: str) -> str:
    """Move the entry out of the way unchanged: a link stays a link, and its target is not touched."""
    make_entry(root, PUT_ASIDE)
    with open_dir(PUT_ASIDE, root) as aside:
        new = f"{label}.{os.urandom(6).hex()}"
        os.rename(name, new, src_dir_fd=parent, dst_dir_fd=aside)
        os.fsync(aside)
    os.fsync(parent)
    return new


def delete(parent: int, name: str) -> None:
    """Delete it recursively. Links are removed and never followed, even if the tree changes meanwhile."""
    import shutil

    if stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
        shutil.rmtree(name, dir_fd=parent)
    else:
        os.unlink(name, dir_fd=parent)


def names(descriptor: int) -> Iterator[str]:
    yield from sorted(os.listdir(descriptor))
