"""A job's private directory on this host, with one lock and one file that describes what was made in it.

The plan is written before anything is made, and marked as done last. After a crash it shows whether the directory
contains work that must be kept or only an incomplete workspace that can be discarded.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import time

from mam.errors import WorkDirUnusable
from mam.stores.files.lock import lock_file
from mam.stores.private_files import read_json_file, replace_json_file
from mam.util.encoding import write_all
from mam.util.state_dir import make_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.jobs.record import Json

PLAN_FILE, LOCK = "place.json", "place.lock"
_LOCK_SECONDS, _LOOK_SECONDS = 600.0, 0.05
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class JobDirectory:
    def __init__(self, work_directory: str, job_id: str) -> None:
        self.job_id = job_id
        self.path = os.path.join(os.path.realpath(work_directory), job_id)

    @property
    def fresh(self) -> str:
        return os.path.join(self.path, "fresh")

    @property
    def worktree(self) -> str:
        return os.path.join(self.path, "worktree")

    def make(self) -> None:
        make_private(os.path.dirname(self.path))
        if make_private(self.path) != self.path:
            raise WorkDirUnusable(job=self.job_id, why=f"{self.path} is a link, not a directory")

    def read(self) -> Json | None:
        """None if nothing was made here. A damaged file counts as none, and is set aside."""
        plan = read_json_file(os.path.join(self.path, PLAN_FILE))
        return plan if isinstance(plan, dict) else None

    def write(self, plan: Json) -> None:
        replace_json_file(os.path.join(self.path, PLAN_FILE), plan)

    @contextlib.contextmanager
    def locked(self) -> Iterator[int]:
        """git inherits the descriptor, so that the lock outlives a killed worker for as long as its git runs."""
        descriptor = self._acquire()
        try:
            yield descriptor
        finally:
            # Closed, not unlocked: a git process that is still running keeps the lock.
            os.close(descriptor)

    def _acquire(self) -> int:
        path = os.path.join(self.path, LOCK)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        return lock_file(path, lambda: os.open(path, flags, 0o600), self.wait_for)

    def wait_for(self, descriptor: int) -> None:
        """Waits until no other process holds this lock."""
        ends = time.monotonic() + _LOCK_SECONDS
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > ends:
                    raise WorkDirUnusable(
                        job=self.job_id, why="another process has been preparing it for minutes"
                    ) from None
                time.sleep(_LOOK_SECONDS)

    def forget(self) -> None:
        """Removes the file, and the directory if nothing else is in it. Called with the lock held."""
        _unlink(os.path.join(self.path, PLAN_FILE))
        if os.listdir(self.path) == [LOCK]:
            _unlink(os.path.join(self.path, LOCK))
            os.rmdir(self.path)


def write_private(path: str, content: bytes, mode: int = 0o600) -> None:
    """Writes a new file that only this user can read, in place of an existing file or link. An agent may have removed
    the directory."""
    try:
        descriptor = os.open(path, _NEW, mode)
    except FileExistsError:
        _unlink(path)
        descriptor = os.open(path, _NEW, mode)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        descriptor = os.open(path, _NEW, mode)
    try:
        write_all(descriptor, content)
    finally:
        os.close(descriptor)


def remove_tree(path: str) -> None:
    """Removes the directory and its content, whatever the modes. Links are removed, never followed."""
    try:
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            os.unlink(path)
            return
        shutil.rmtree(path)
    except FileNotFoundError:
        return
    except PermissionError:
        _open_up(path)
        shutil.rmtree(path)


def _open_up(path: str) -> None:
    os.chmod(path, 0o700)
    for _, names, _, directory in os.fwalk(path):
        for name in names:
            if stat.S_ISDIR(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
                os.chmod(name, 0o700, dir_fd=directory)


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
