"""Check the modes of mam's files (0600) and directories (writable only by the owner)."""

from __future__ import annotations

import os
import stat

from mam.audit.log import EVENTS, META, STATUS
from mam.doctor.finding import count, fine, first_few, wrong
from mam.jobs.input_rules import is_job_id
from mam.location.stores import FILES
from mam.stores.files.lock import LOCK_FILE
from mam.util.state_dir import state_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mam.doctor.context import Context
    from mam.doctor.finding import Finding

NOT_OTHERS = 0o077
NOT_WRITTEN = 0o022


def check(context: Context) -> Iterator[Finding]:
    """Checks only paths that are mam's by directory and name; `--fix` changes no others."""
    found = _ModeCheck()
    if context.kind == FILES and context.directory is not None:
        found.directory(context.directory)
        found.files(context.directory, _of_store)
        found.tree(os.path.join(context.directory, ".store"))
    if context.database is not None and context.try_open() is not None:
        for suffix in ("", "-wal", "-shm", "-bell", "-secrets"):
            found.file(context.database + suffix)
    if context.located is not None and context.try_open() is not None:
        found.logs(context.located.logs_dir)
    found.directory(state_directory())
    yield from found.findings()


def _of_store(name: str) -> bool:
    return name == LOCK_FILE or is_job_id(name.removesuffix(".json").removesuffix(".events.log"))


def _of_log(name: str) -> bool:
    return name in (LOCK_FILE, META, EVENTS, STATUS) or name.startswith(".cursor-")


class _ModeCheck:
    def __init__(self) -> None:
        self.open: list[tuple[str, int]] = []
        """Path and correct mode of what other users can access."""
        self.foreign: list[str] = []
        self.looked = 0

    def logs(self, directory: str) -> None:
        if not os.path.isdir(directory):
            return
        self.directory(directory)
        self.files(directory, _of_log)
        for name in os.listdir(directory):
            path = os.path.join(directory, name)
            if is_job_id(name) and os.path.isdir(path) and not os.path.islink(path):
                self.directory(path)
                self.files(path, _of_log)

    def tree(self, directory: str) -> None:
        """Everything in a private directory of mam."""
        if not os.path.isdir(directory) or os.path.islink(directory):
            return
        self.directory(directory)
        self.files(directory, lambda _name: True)
        for name in os.listdir(directory):
            self.tree(os.path.join(directory, name))

    def files(self, directory: str, is_ours: Callable[[str], bool]) -> None:
        try:
            names = os.listdir(directory)
        except OSError:
            return
        for name in names:
            if is_ours(name):
                self.file(os.path.join(directory, name))

    def file(self, path: str) -> None:
        self._check_mode(path, NOT_OTHERS, stat.S_ISREG)

    def directory(self, path: str) -> None:
        self._check_mode(path, NOT_WRITTEN, stat.S_ISDIR)

    def findings(self) -> Iterator[Finding]:
        if self.foreign:
            yield wrong(
                f"{count(len(self.foreign), 'path')} owned by other users: {first_few(self.foreign)}",
                "mam ignores files of other users, so these jobs are not visible",
                f"sudo chown -R {os.geteuid()} {os.path.dirname(self.foreign[0])}",
            )
        if self.open:
            paths = [path for path, _ in self.open]
            yield wrong(
                f"{count(len(paths), 'path')} accessible to other users: {first_few(paths)}",
                "prompts, results and tokens are private",
                fix=self._close_all,
            )
        if not self.foreign and not self.open:
            what = "1 file or directory is" if self.looked == 1 else f"{self.looked:,} files and directories are"
            yield fine(f"{what} accessible only to you")

    def _close_all(self) -> None:
        for path, mode in self.open:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                os.fchmod(descriptor, mode)
            finally:
                os.close(descriptor)

    def _check_mode(self, path: str, bits: int, is_kind: Callable[[int], bool]) -> None:
        try:
            found = os.lstat(path)
        except OSError:
            return
        if not is_kind(found.st_mode):
            return
        self.looked += 1
        if found.st_uid != os.geteuid():
            self.foreign.append(path)
        elif found.st_mode & bits:
            self.open.append((path, stat.S_IMODE(found.st_mode) & ~bits))
