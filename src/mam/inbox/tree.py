"""The directories of an inbox, and file operations in them that never overwrite and never follow a link.

A user who can drop a file can also drop a link. So every directory is opened name by name from the root, and files are
named relative to its descriptor.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat

from mam.errors import BadInput
from mam.inbox.names import INBOX, is_prompt, is_running
from mam.stores.private_files import make_directories
from mam.util.encoding import write_all
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

PROCESSED, FINISHED, FAILED, QUEUE = "processed", "finished", "failed", ".queue"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_DEPTH = 32
_NOREPLACE = 1


class PromptFile(Frozen):
    """A prompt file and its stat fields in one scan."""

    rel: str
    """The path below the inbox."""
    inode: int
    size: int
    modified_ns: int
    changed_ns: int
    mode: int
    uid: int
    links: int

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.mode)


class Scan(Frozen):
    """The result of one scan of the inbox."""

    prompts: list[PromptFile]
    running: list[str]
    problems: list[str]


class Tree:
    def __init__(self, root: str) -> None:
        self.root = root
        self.inbox = os.path.join(root, INBOX)
        self._open_folders: dict[str, int] | None = None

    def make(self) -> None:
        for name in (INBOX, QUEUE):
            make_directories(os.path.join(self.root, name))

    def scan(self) -> Scan:
        found = Scan(prompts=[], running=[], problems=[])
        self._walk("", 0, found)
        found.prompts.sort(key=lambda seen: (seen.modified_ns, seen.rel))
        return found

    def _walk(self, folder: str, depth: int, found: Scan) -> None:
        path = os.path.join(self.inbox, folder) if folder else self.inbox
        below = []
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    rel = f"{folder}/{entry.name}" if folder else entry.name
                    if entry.is_dir(follow_symlinks=False):
                        below.append(rel)
                    elif is_prompt(entry.name):
                        with contextlib.suppress(FileNotFoundError):
                            found.prompts.append(_prompt_file(rel, entry.stat(follow_symlinks=False)))
                    elif is_running(entry.name) and entry.is_file(follow_symlinks=False):
                        found.running.append(rel)
        except FileNotFoundError:
            return  # removed during the scan
        except OSError as error:
            found.problems.append(f"{path}: {error.strerror}")
            return
        for rel in below:
            if depth < _MAX_DEPTH and not os.path.basename(rel).startswith("."):
                self._walk(rel, depth + 1, found)

    @contextlib.contextmanager
    def keep_open(self) -> Iterator[None]:
        """Keep directories open until the end of the block, for work on many files in few directories."""
        self._open_folders = {}
        try:
            yield
        finally:
            open_folders, self._open_folders = self._open_folders, None
            for descriptor in open_folders.values():
                os.close(descriptor)

    @contextlib.contextmanager
    def folder(self, *parts: str, make: bool = False, durable: bool = True) -> Iterator[int]:
        """Open a directory below the root without following links. `durable` syncs directories that are created."""
        names = [name for name in "/".join(parts).split("/") if name]
        key = "/".join(names)
        if self._open_folders is not None and key in self._open_folders:
            yield self._open_folders[key]
            return
        descriptor = self._descend(names, make=make, durable=durable)
        if self._open_folders is not None and durable:
            self._open_folders[key] = descriptor
            yield descriptor
            return
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _descend(self, names: list[str], *, make: bool, durable: bool) -> int:
        above = "/".join(names[:-1])
        if self._open_folders is not None and names:
            if above not in self._open_folders:
                self._open_folders[above] = self._descend(names[:-1], make=make, durable=durable)
            return _open_child(self._open_folders[above], names[-1], make=make, durable=durable)
        descriptor = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for name in names:
            above_it = descriptor
            try:
                descriptor = _open_child(above_it, name, make=make, durable=durable)
            finally:
                os.close(above_it)
        return descriptor

    def stat(self, rel: str) -> PromptFile | None:
        """The file's current stat fields, links not followed."""
        try:
            with self.folder(INBOX, os.path.dirname(rel)) as folder:
                return _prompt_file(rel, os.stat(os.path.basename(rel), dir_fd=folder, follow_symlinks=False))
        except (FileNotFoundError, NotADirectoryError):
            return None


def _prompt_file(rel: str, about: os.stat_result) -> PromptFile:
    return PromptFile(
        rel=rel, inode=about.st_ino, size=about.st_size, modified_ns=about.st_mtime_ns, changed_ns=about.st_ctime_ns,
        mode=about.st_mode, uid=about.st_uid, links=about.st_nlink,
    )  # fmt: skip


def _open_child(directory: int, name: str, *, make: bool, durable: bool) -> int:
    if name in (".", ".."):
        raise BadInput(why=f"{name} is not a directory of an inbox")
    try:
        return os.open(name, _FOLDER, dir_fd=directory)
    except FileNotFoundError:
        if not make:
            raise
    try:
        os.mkdir(name, 0o700, dir_fd=directory)
    except FileExistsError:
        pass
    if durable:
        os.fsync(directory)
    return os.open(name, _FOLDER, dir_fd=directory)


def exists(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def move(folder: int, name: str, to_folder: int, to_name: str) -> None:
    """Rename, or raise FileExistsError if the target exists."""
    renameat2 = _renameat2()
    if renameat2 is None:
        _move_plainly(folder, name, to_folder, to_name)
        return
    code = renameat2(folder, os.fsencode(name), to_folder, os.fsencode(to_name))
    if code in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):  # not supported on this file system
        _move_plainly(folder, name, to_folder, to_name)
    elif code:
        raise OSError(code, os.strerror(code), to_name if code == errno.EEXIST else name)


def _move_plainly(folder: int, name: str, to_folder: int, to_name: str) -> None:
    """Not atomic, but the inbox's lock keeps other mam processes from creating the target in between."""
    if exists(to_folder, to_name):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), to_name)
    os.rename(name, to_name, src_dir_fd=folder, dst_dir_fd=to_folder)


_found: list[Callable[[int, bytes, int, bytes], int] | None] = []


def _renameat2() -> Callable[[int, bytes, int, bytes], int] | None:
    """The kernel's renameat2 with RENAME_NOREPLACE, returning an error number; None where it is missing."""
    if not _found:
        import ctypes

        call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)

        def renameat2(folder: int, name: bytes, to_folder: int, to_name: bytes) -> int:
            assert call is not None
            return ctypes.get_errno() if call(folder, name, to_folder, to_name, _NOREPLACE) else 0

        _found.append(None if call is None else renameat2)
    return _found[0]


def write_new(folder: int, name: str, parts: Iterable[bytes], *, durable: bool) -> None:
    """Create a file with the whole content, or leave nothing."""
    descriptor = os.open(name, _NEW, 0o600, dir_fd=folder)
    try:
        for part in parts:
            write_all(descriptor, part)
        if durable:
            os.fsync(descriptor)
    except BaseException:
        os.unlink(name, dir_fd=folder)
        raise
    finally:
        os.close(descriptor)


def replace(folder: int, name: str, content: bytes, *, durable: bool) -> None:
    """Readers see the old file or the new one. The lock guarantees that no other process uses the temporary name."""
    temporary = temporary_name(name)
    try:
        write_new(folder, temporary, (content,), durable=durable)
    except FileExistsError:  # left by a killed process
        unlink(folder, temporary)
        write_new(folder, temporary, (content,), durable=durable)
    os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)


def temporary_name(name: str) -> str:
    """Hidden, so that it is not taken for a prompt, and never too long."""
    return f".mam-{name[-40:]}"


def unlink(folder: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        pass
