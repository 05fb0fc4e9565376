"""Write the outcome of a job into the inbox, and move it to `finished` after a while.

1. write the prompt and its outcome under a hidden name, and sync it
2. rename it to `x.done.md` or `x.error.md`, and remove `x.running.md`
3. write the copy in `failed`, and the mirror
4. mark the row as shown; later move the file to `finished` and delete the row

If mam is killed at any point, it starts again: the content depends only on the record, and mam recognizes its own files
by their content.
"""

from __future__ import annotations

import contextlib
import os

from mam.inbox import names
from mam.inbox.ledger import SHOWN
from mam.inbox.mirror import OutcomePaths
from mam.inbox.names import INBOX, RUNNING, path_with_state, with_infix
from mam.inbox.outcome import format_note, format_outcome, format_refusal, identity_line
from mam.inbox.submit import COPY
from mam.inbox.tree import FAILED, FINISHED, PROCESSED, exists, move, replace, temporary_name, unlink, write_new
from mam.jobs.status import Status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.inbox.ledger import LedgerRow
    from mam.inbox.mirror import Mirror
    from mam.inbox.settings import Settings
    from mam.inbox.tree import Tree
    from mam.jobs.record import Job

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_PART = 1 << 20


class OutcomeWriter:
    """Every method is called with the ledger's lock held."""

    def __init__(self, settings: Settings, tree: Tree, mirror: Mirror) -> None:
        self._settings = settings
        self._tree = tree
        self._mirror = mirror

    def write_outcome(self, row: LedgerRow, job: Job, now_ms: int) -> LedgerRow:
        """Write the outcome of an ended job to where the prompt was dropped."""
        done = job.status is Status.COMPLETED
        rel = self._write(row, names.DONE if done else names.ERROR, format_outcome(job, row), job)
        self._mirror.write(
            job, row, OutcomePaths(processed=self._processed(row), archived=self._archived(row, job, done))
        )
        return row.replace(state=SHOWN, outcome=rel, shown_ms=now_ms)

    def write_refusal(self, row: LedgerRow, why: str, now_ms: int) -> LedgerRow:
        row = row.replace(refused=1)
        rel = self._write(row, names.ERROR, format_refusal(row, why), None)
        return row.replace(state=SHOWN, outcome=rel, shown_ms=now_ms)

    def find_refusal(self, row: LedgerRow) -> str | None:
        """The outcome file of an earlier attempt to refuse this row, if there is one."""
        row = row.replace(refused=1)
        rel = path_with_state(row.rel, names.ERROR)
        try:
            with self._tree.folder(INBOX, os.path.dirname(rel)) as folder:
                for candidate in (rel, with_infix(rel, row.job_id)):
                    if self._is_ours(folder, os.path.basename(candidate), row):
                        return candidate
        except (FileNotFoundError, NotADirectoryError):
            pass
        return None

    def write_note(self, rel: str, why: str) -> None:
        """Write `x.error.md` beside a file that stays where it is."""
        with self._tree.folder(INBOX, os.path.dirname(rel)) as folder:
            name = os.path.basename(path_with_state(rel, names.ERROR))
            if exists(folder, name):
                self._move_to_finished(os.path.join(os.path.dirname(rel), name), "")
            replace(folder, name, format_note(rel, why), durable=False)

    def archive(self, row: LedgerRow) -> str:
        """Move the outcome from the inbox to `finished` and return its path. It overwrites nothing; a missing outcome
        is not an error."""
        return self._move_to_finished(row.outcome, row.job_id)

    # -- steps -----------------------------------------------------------------------------------------------------

    def _write(self, row: LedgerRow, state: str, outcome: bytes, job: Job | None) -> str:
        rel = path_with_state(row.rel, state)
        parent = os.path.dirname(rel)
        with self._tree.folder(INBOX, parent, make=True) as folder:
            running = os.path.basename(path_with_state(row.rel, RUNNING))
            there = exists(folder, running)
            for candidate in (rel, with_infix(rel, row.job_id)):
                name = os.path.basename(candidate)
                if exists(folder, name) and not self._is_ours(folder, name, row):
                    continue
                if there or not exists(folder, name):
                    self._put(folder, name, self._parts(row, folder, running, outcome, job))
                unlink(folder, running)
                os.fsync(folder)
                return candidate
        raise FileExistsError(17, "another file has the name of its outcome", rel)

    def _put(self, folder: int, name: str, parts: Iterator[bytes]) -> None:
        temporary = temporary_name(name)
        unlink(folder, temporary)
        write_new(folder, temporary, parts, durable=True)
        unlink(folder, name)  # always mam's own
        move(folder, temporary, folder, name)

    def _is_ours(self, folder: int, name: str, row: LedgerRow) -> bool:
        """An agent's result may contain the same line, so it counts only directly below the heading."""
        mark = b"# Outcome: %s\n\n%s\n" % (name.rsplit(".", 2)[-2].encode(), identity_line(row).encode())
        try:
            return any(mark in part for part in _overlapping(folder, name, len(mark)))
        except OSError:
            return False

    def _parts(self, row: LedgerRow, folder: int, running: str, outcome: bytes, job: Job | None) -> Iterator[bytes]:
        """The prompt as it was dropped: from the inbox, otherwise from the copy, otherwise from the registry."""
        try:
            yield from _parts_of(folder, running)
        except OSError:
            yield from self._saved_prompt(row, job)
        yield outcome

    def _saved_prompt(self, row: LedgerRow, job: Job | None) -> Iterator[bytes]:
        try:
            with self._tree.folder(PROCESSED, row.target.path, row.job_id) as folder:
                yield from _parts_of(folder, COPY)
        except OSError:
            yield b"" if job is None else job.prompt.encode(errors="replace")

    def _processed(self, row: LedgerRow) -> str:
        """The path of the copy. It is synced here, because nothing repairs it after the job has ended."""
        with (
            contextlib.suppress(FileNotFoundError, NotADirectoryError),
            self._tree.folder(PROCESSED, row.target.path, row.job_id) as folder,
        ):
            descriptor = os.open(COPY, _READ, dir_fd=folder)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.fsync(folder)
        return os.path.join(self._tree.root, PROCESSED, row.target.path, row.job_id, COPY)

    def _archived(self, row: LedgerRow, job: Job, done: bool) -> str | None:
        if done or not self._settings.failure_archive:
            return None
        parts = (FAILED, row.target.path, row.job_id)
        with self._tree.folder(*parts, make=True) as folder:
            replace(folder, os.path.basename(row.rel), b"".join(self._saved_prompt(row, job)), durable=True)
            os.fsync(folder)
        return os.path.join(self._tree.root, *parts, os.path.basename(row.rel))

    def _move_to_finished(self, rel: str, job_id: str) -> str:
        parent, name = os.path.split(rel)
        candidate = name
        with contextlib.suppress(FileNotFoundError, NotADirectoryError), self._tree.folder(INBOX, parent) as folder:
            if not exists(folder, name):
                return ""
            with self._tree.folder(FINISHED, parent, make=True) as finished:
                for candidate in (name, *_alternative_names(name, job_id)):
                    try:
                        move(folder, name, finished, os.path.basename(candidate))
                    except FileExistsError:
                        continue
                    break
                # The new name is synced before the removal of the old one: a power cut may leave both, never neither.
                os.fsync(finished)
            os.fsync(folder)
        return os.path.join(FINISHED, parent, os.path.basename(candidate))


def _alternative_names(name: str, job_id: str) -> Iterator[str]:
    if job_id:
        yield with_infix(name, job_id)
    for number in range(2, 1000):
        yield with_infix(name, str(number))


def _parts_of(folder: int, name: str) -> Iterator[bytes]:
    with open(os.open(name, _READ, dir_fd=folder), "rb", buffering=0) as file:
        while part := file.read(_PART):
            yield part


def _overlapping(folder: int, name: str, length: int) -> Iterator[bytes]:
    tail = b""
    for part in _parts_of(folder, name):
        yield tail + part
        tail = part[-length:]
