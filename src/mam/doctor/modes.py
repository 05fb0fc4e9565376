"""Whether other users can read or write what mam keeps: files 0600, directories that only the owner writes."""

from __future__ import annotations

import os
import stat

from mam.doctor.finding import fine, some, wrong
from mam.state import state_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mam.doctor.finding import Finding
    from mam.doctor.patient import Patient

NOT_OTHERS = 0o077
NOT_WRITTEN = 0o022


def look(patient: Patient) -> Iterator[Finding]:
    found = _Look()
    if patient.directory is not None and patient.database is None:
        found.tree(patient.directory, depth=3)
    if patient.database is not None:
        for suffix in ("", "-wal", "-shm", "-bell", "-secrets"):
            found.file(patient.database + suffix)
    if patient.located is not None and os.path.isdir(patient.located.logs_dir):
        found.tree(patient.located.logs_dir, depth=2)
    found.directory(state_directory())
    yield from found.findings()


class _Look:
    def __init__(self) -> None:
        self.open: list[tuple[str, int]] = []
        """Path and mode of what others can reach and should not."""
        self.foreign: list[str] = []
        self.looked = 0

    def tree(self, directory: str, depth: int) -> None:
        self.directory(directory)
        try:
            entries = list(os.scandir(directory))
        except OSError:
            return
        for entry in entries:
            if entry.name == ".gitignore" or entry.is_symlink():
                continue
            if not entry.is_dir(follow_symlinks=False):
                self.file(entry.path)
            elif depth > 1:
                self.tree(entry.path, depth - 1)

    def file(self, path: str) -> None:
        self._judge(path, NOT_OTHERS, stat.S_ISREG)

    def directory(self, path: str) -> None:
        self._judge(path, NOT_WRITTEN, stat.S_ISDIR)

    def findings(self) -> Iterator[Finding]:
        if self.foreign:
            yield wrong(
                f"{len(self.foreign)} belong to other users: {some(self.foreign)}",
                "mam leaves what others own alone, so that these jobs are not seen",
                f"sudo chown -R {os.geteuid()} {os.path.dirname(self.foreign[0])}",
            )
        if self.open:
            yield wrong(
                f"{len(self.open)} can be reached by other users: {some([path for path, _ in self.open])}",
                "prompts, results and tokens are for you alone",
                fix=self._close_all,
            )
        if not self.foreign and not self.open:
            yield fine(f"{self.looked:,} files and directories are yours alone")

    def _close_all(self) -> None:
        for path, mode in self.open:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                os.fchmod(descriptor, mode)
            finally:
                os.close(descriptor)

    def _judge(self, path: str, bits: int, is_kind: Callable[[int], bool]) -> None:
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
