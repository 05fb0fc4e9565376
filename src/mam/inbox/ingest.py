"""The hand-over: from a file that somebody dropped to a job in the registry, once, whatever happens in between.

1. a row in the ledger, with the id that the job will have
2. `x.prompt.md` becomes `x.running.md`
3. the job is registered under that id
4. a copy of the prompt in `processed`, and the mirror
5. the row says that the job is open

Whoever is cut off leaves a row behind, and the next holder of the lock goes on from there. docs/inbox.md has a line for
each place where that can happen. Many files are taken at once, since every step but the fourth, which needs none, is
synced for many together. Steps 3 and 4 are in handing.py.
"""

from __future__ import annotations

import os

from mam.errors import BadInput, MamError
from mam.inbox.ledger import OPEN, LedgerRow
from mam.inbox.names import INBOX, PROMPT, RUNNING, Target, parse_target, path_with_state
from mam.inbox.submit import Submission, Submitter
from mam.inbox.tree import exists, move
from mam.work.claim import AWAY

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
        self._registry = registry
        self._find_refusal = find_refusal
        """The file that tells why a claim was refused, if there is one."""
        self.problems: list[str] = []
        """What could not be done, and will be tried again."""
        self._submitter = Submitter(settings, tree, mirror, registry, self.problems)

    def ingest(self, seen: Iterable[PromptFile]) -> list[Submission]:
        """Claim these and hand them over. What another watcher has claimed meanwhile is passed over."""
        with self._tree.kept_open():
            return self._ingest(seen)

    def _ingest(self, seen: Iterable[PromptFile]) -> list[Submission]:
        rows = [
            self._new_row(one)
            for one in seen
            if not self._ledger.has_active(one.rel)
            and self._tree.stat(one.rel) == one
            and not self._has_running_file(one.rel)
        ]
        self._ledger.add(rows)
        return self._submit(rows, new=True)

    def resume(self, rows: list[LedgerRow]) -> list[Submission]:
        """From wherever somebody left them."""
        with self._tree.kept_open():
            return self._submit(rows, new=False)

    def _submit(self, rows: list[LedgerRow], *, new: bool) -> list[Submission]:
        submissions = self._submitter.submit(self._rename(rows, new=new), new=new)
        submissions += [
            Submission(row=row, shown=rel) for row in self._withdrawn if (rel := self._find_refusal(row)) is not None
        ]
        reported = {one.row.job_id for one in submissions}
        gone = [row.job_id for row in self._withdrawn if row.job_id not in reported]
        opened = [one.row.replace(state=OPEN) for one in submissions if one.job is not None]
        self._ledger.update(opened)
        self._ledger.remove(gone + [one.row.job_id for one in submissions if one.unreadable])
        return [one.replace(row=one.row.replace(state=OPEN)) if one.job is not None else one for one in submissions]

    def repair_copies(self, rows: Iterable[LedgerRow]) -> None:
        for row in rows:
            try:
                self._submitter.repair_copy(row)
            except AWAY:
                raise
            except (MamError, OSError) as error:
                self.problems.append(f"{row.rel}: {error}")

    def adopt(self, rel: str) -> Submission | None:
        """A file that is called running and that no row knows: left by the older watcher, or by a lost ledger."""
        seen = self._tree.stat(rel)
        if seen is None or not seen.is_file:
            return None
        row = self._new_row(seen.replace(rel=path_with_state(rel, PROMPT)))
        self._ledger.add([row])
        return next(iter(self.resume([row])), None)

    # -- steps -----------------------------------------------------------------------------------------------------

    def _has_running_file(self, rel: str) -> bool:
        """The same name again waits until the one before it has ended."""
        return self._tree.stat(path_with_state(rel, RUNNING)) is not None

    def _new_row(self, seen: PromptFile) -> LedgerRow:
        settings = self._settings
        try:
            target = parse_target(seen.rel, settings.mode, settings.owner, settings.here)
        except BadInput:  # said again, and acted upon, once the file is ours
            target = Target(owner="", repo="", branch="")
        return LedgerRow(job_id=self._registry.store.clock.new_id(), rel=seen.rel, inode=seen.inode, **target.as_dict())

    def _rename(self, rows: list[LedgerRow], *, new: bool) -> list[LedgerRow]:
        """Those whose file, or whose job, is there. Each directory is synced once."""
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
        """Just looked at, so there is nothing to find out first."""
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
            # Not our file any more: withdrawn before the rename, or, when there is a job, removed after it.
            return self._submitter.find_job(row) is not None
        if inode != row.inode:
            return self._submitter.find_job(row) is not None
        move(folder, prompt, folder, running)
        return True
