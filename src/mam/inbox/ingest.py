"""Ingest dropped files: each becomes exactly one job in the registry, even if mam is killed at any point.

1. add a row to the ledger, with the id of the future job
2. rename `x.prompt.md` to `x.running.md`
3. register the job under that id
4. copy the prompt to `processed`, and write the mirror
5. mark the row as open

A killed process leaves its row, and the next holder of the lock continues from there. docs/inbox.md lists every such
point. Many files are ingested at once, so that each step is synced once for all of them; step 4 needs no sync. Steps 3
and 4 are in submit.py.
"""

from __future__ import annotations

import os

from mam.errors import BadInput, MamError
from mam.inbox.ledger import OPEN, LedgerRow
from mam.inbox.names import INBOX, PROMPT, RUNNING, Target, parse_target, path_with_state
from mam.inbox.submit import Submission, Submitter
from mam.inbox.tree import exists, move
from mam.work.claim import STORE_UNREACHABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mam.inbox.ledger import Ledger
    from mam.inbox.mirror import Mirror
    from mam.inbox.settings import Settings
    from mam.inbox.tree import PromptFile, Tree
    from mam.registry import Registry

BATCH = 256


class Ingester:
    """Every method is called with the ledger's lock held."""

    def __init__(
        self,
        settings: Settings,
        tree: Tree,
        ledger: Ledger,
        mirror: Mirror,
        registry: Registry,
        find_refusal: Callable[[LedgerRow], str | None],
    ) -> None:
        self._settings = settings
        self._tree = tree
        self._ledger = ledger
        self._mirror = mirror
        self._registry = registry
        self._find_refusal = find_refusal
        """Finds the file that states why a row was refused, if there is one."""
        self.problems: list[str] = []
        """What failed and will be retried."""
        self._submitter = Submitter(settings, tree, mirror, registry, self.problems)

    def ingest(self, files: Iterable[PromptFile]) -> list[Submission]:
        """Add rows for these files and submit them. Files that another watcher has ingested meanwhile are skipped."""
        with self._tree.keep_open():
            return self._ingest(files)

    def _ingest(self, files: Iterable[PromptFile]) -> list[Submission]:
        rows = [
            self._new_row(file)
            for file in files
            if not self._ledger.has_active(file.rel)
            and self._tree.stat(file.rel) == file
            and not self._has_running_file(file.rel)
        ]
        self._ledger.add(rows)
        return self._submit(rows, new=True)

    def resume(self, rows: list[LedgerRow]) -> list[Submission]:
        """Continue rows that a killed process left."""
        with self._tree.keep_open():
            return self._submit(rows, new=False)

    def _submit(self, rows: list[LedgerRow], *, new: bool) -> list[Submission]:
        submissions = self._submitter.submit(self._rename(rows, new=new), new=new)
        submissions += [
            Submission(row=row, shown=rel) for row in self._withdrawn if (rel := self._find_refusal(row)) is not None
        ]
        reported = {item.row.job_id for item in submissions}
        withdrawn_ids = [row.job_id for row in self._withdrawn if row.job_id not in reported]
        opened = [item.row.replace(state=OPEN) for item in submissions if item.job is not None]
        self._ledger.update(opened)
        self._ledger.remove(withdrawn_ids + [item.row.job_id for item in submissions if item.unreadable])
        return [
            item.replace(row=item.row.replace(state=OPEN)) if item.job is not None else item for item in submissions
        ]

    def repair_copies(self, rows: Iterable[LedgerRow]) -> None:
        for row in rows:
            try:
                self._submitter.repair_copy(row)
            except STORE_UNREACHABLE:
                raise
            except (MamError, OSError) as error:
                self.problems.append(f"{row.rel}: {error}")

    def adopt(self, rel: str) -> Submission | None:
        """Ingest a running file without a row: left by the older watcher, under the id that it gave, or by a lost
        ledger."""
        file = self._tree.stat(rel)
        if file is None or not file.is_file:
            return None
        row = self._new_row(file.replace(rel=path_with_state(rel, PROMPT)))
        known_id = self._mirror.open_job(row.rel)
        if known_id is not None:
            row = row.replace(job_id=known_id)
        self._ledger.add([row])
        return next(iter(self.resume([row])), None)

    # -- steps -----------------------------------------------------------------------------------------------------

    def _has_running_file(self, rel: str) -> bool:
        """A second file of the same name waits until the first one has ended."""
        return self._tree.stat(path_with_state(rel, RUNNING)) is not None

    def _new_row(self, file: PromptFile) -> LedgerRow:
        settings = self._settings
        try:
            target = parse_target(file.rel, settings.mode, settings.owner, settings.here)
        except BadInput:  # reported later, when the file belongs to the row
            target = Target(owner="", repo="", branch="")
        return LedgerRow(job_id=self._registry.store.clock.new_id(), rel=file.rel, inode=file.inode, **target.as_dict())

    def _rename(self, rows: list[LedgerRow], *, new: bool) -> list[LedgerRow]:
        """Rename the files. Returns the rows whose file or job exists. Each directory is synced once."""
        there: list[LedgerRow] = []
        self._withdrawn: list[LedgerRow] = []
        folders: dict[str, list[LedgerRow]] = {}
        for row in rows:
            folders.setdefault(os.path.dirname(row.rel), []).append(row)
        for name, members in folders.items():
            try:
                with self._tree.folder(INBOX, name) as folder:
                    rename = self._rename_new if new else self._rename_one
                    found = [row for row in members if rename(folder, row)]
                    os.fsync(folder)
            except (FileNotFoundError, NotADirectoryError):
                found = [row for row in members if self._submitter.find_job(row) is not None]
            except OSError as error:
                self.problems.append(f"{os.path.join(INBOX, name)}: {error.strerror or error}")
                continue
            there += found
            ids = {row.job_id for row in found}
            self._withdrawn += [row for row in members if row.job_id not in ids]
        return there

    def _rename_new(self, folder: int, row: LedgerRow) -> bool:
        """The file was just checked, so no state of an earlier attempt is possible."""
        try:
            move(folder, os.path.basename(row.rel), folder, os.path.basename(path_with_state(row.rel, RUNNING)))
        except (FileNotFoundError, FileExistsError):
            return False
        return True

    def _rename_one(self, folder: int, row: LedgerRow) -> bool:
        prompt = os.path.basename(row.rel)
        running = os.path.basename(path_with_state(row.rel, RUNNING))
        if exists(folder, running):
            return True
        try:
            inode = os.stat(prompt, dir_fd=folder, follow_symlinks=False).st_ino
        except FileNotFoundError:
            # The file is gone: withdrawn before the rename or, if there is a job, removed after it.
            return self._submitter.find_job(row) is not None
        if inode != row.inode:
            return self._submitter.find_job(row) is not None
        move(folder, prompt, folder, running)
        return True
