"""The main loop of an inbox: scan the tree, ingest files, follow the jobs, write the outcomes. `run_cycle` does all of
it once.

The loop holds no state of its own: rows are in the ledger, jobs in the registry, files in the tree. It scans the tree
after each change, and periodically in case a change was missed.
"""

from __future__ import annotations

import os
import time

from mam.errors import MamError, UnknownJob
from mam.inbox.debounce import Debouncer
from mam.inbox.deliver import OutcomeWriter
from mam.inbox.ingest import BATCH, Ingester
from mam.inbox.ledger import CLAIMED, OPEN, SHOWN, Ledger, LedgerRow
from mam.inbox.mirror import Mirror
from mam.inbox.names import check_name, path_with_state
from mam.inbox.repair import prune, recover_rows, repair
from mam.inbox.tree import QUEUE, Tree
from mam.location.ownership import TrackedFiles
from mam.util.gitignore import ignore_in_git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable

    from mam.inbox.settings import Settings
    from mam.inbox.submit import Submission
    from mam.inbox.tree import PromptFile, Scan
    from mam.jobs.record import Job
    from mam.registry import Registry

    Notify = Callable[[str, LedgerRow, Job | None, str], None]

TAKEN, REFUSED, ENDED, LEFT, FINISHED = "taken", "refused", "ended", "left", "finished"
"""What happened to a file: it became a job; it was refused; its job has ended; it was left as it is; it was
archived."""
SCAN_SECONDS = 5.0
"""How often to scan without a change; less often if a scan takes long."""
_SCAN_SHARE = 1000.0
_RETRY_SECONDS = 2.0
_MAX_FILES_PER_SCAN = 4 * BATCH
"""How many files to ingest before the jobs are checked again."""
_PRUNE_SECONDS = 3600.0


class Inbox:
    def __init__(self, settings: Settings, registry: Registry, notify: Notify, warn: Callable[[str], None]) -> None:
        self.settings = settings
        self._registry = registry
        self._notify = notify
        self._warn = warn
        self.tree = Tree(settings.root)
        self.tree.make()
        if os.path.basename(settings.root) == ".mam":
            ignore_in_git(settings.root)
        self._ledger = Ledger(os.path.join(settings.root, QUEUE))
        if self._ledger.bind_store(registry.store.journal_id, registry.store.address, settings.root):
            with self._ledger.locked():
                self._ledger.add(recover_rows(registry.store, settings))
        self._mirror = Mirror(settings.jobs_root, settings.root)
        self._mirror.make()
        self._writer = OutcomeWriter(settings, self.tree, self._mirror)
        self._ingester = Ingester(
            settings, self.tree, self._ledger, self._mirror, registry, self._writer.find_refusal
        )  # fmt: skip
        self._debouncer = Debouncer(self.tree, settings.settle_seconds)
        self._tracked = TrackedFiles(self.tree.inbox)
        self._tracked_files: Container[str] = frozenset()
        self._waits_for_git = False
        self.open: dict[str, LedgerRow] = {}
        """Rows whose outcome is still to be written."""
        self.jobs: dict[str, Job] = {}
        """The same jobs as last read, without their prompts."""
        self._shown: dict[str, LedgerRow] = {}
        self._version = -1
        self._due: set[str] = set()
        """Jobs to check although the journal has no new entry about them."""
        self._scan_at = self._prune_at = 0.0
        self._repaired = False
        self.waiting = 0
        """Prompt files that were found and not yet ingested."""

    @property
    def problems(self) -> list[str]:
        """What failed in the last cycle and will be retried."""
        return self._ingester.problems

    def close(self) -> None:
        self._ledger.close()

    def run_cycle(self, changed: Iterable[str] | None = None, *, scan: bool = True) -> float:
        """Do everything that is due; returns the seconds until there may be more. `changed` names the jobs with new
        journal entries, None all jobs."""
        self._ingester.problems.clear()
        with self._ledger.locked():
            self._load()
            self._resume_interrupted()
            due, self._due = self._due, set()
            self._update_jobs({*(self.open if changed is None else changed), *due})
        if scan or time.monotonic() >= self._scan_at:
            self._scan()
        with self._ledger.locked():
            next_archive = self._archive_due()
            self._prune()
        for problem in self.problems:
            self._warn(problem)
        again = _RETRY_SECONDS if self._ingester.problems else SCAN_SECONDS
        return max(0.005, min(again, next_archive, self._scan_at - time.monotonic()))

    # -- what is known ---------------------------------------------------------------------------------------------

    def _load(self) -> None:
        """Reload the rows only if another process has changed the ledger."""
        version = self._ledger.version()
        if version == self._version and self._repaired:
            return
        self._version = version
        known = self.open.keys()
        self.open = {row.job_id: row for row in self._ledger.rows(OPEN)}
        self._due |= self.open.keys() - known  # their entries may have been read before the rows were known
        self._shown = {row.job_id: row for row in self._ledger.rows(SHOWN)}
        if not self._repaired:
            settings = self.settings
            for problem in repair(self._mirror, settings.jobs_root, settings.root, self._registry, self.open):
                self._warn(problem)
            self._ingester.repair_copies(self.open.values())
            self._repaired = True

    def _resume_interrupted(self) -> None:
        """Continue interrupted rows. The lock guarantees that no other process is working on them."""
        left_behind = self._ledger.rows(CLAIMED)
        if left_behind:
            self._record(self._ingester.resume(left_behind))

    def _update_jobs(self, job_ids: Iterable[str]) -> None:
        ended = []
        for job_id in list(job_ids):
            row = self.open.get(job_id)
            if row is None:
                continue
            try:
                job = self._registry.get_exact(job_id)
                if job.status.ended:
                    ended.append(self._writer.write_outcome(row, job, self._now_ms()))
                    self._notify(ENDED, ended[-1], job, "")
                else:
                    self.jobs[job_id] = job.replace(prompt="")
                    self._mirror.write(job, row)
            except UnknownJob:
                ended.append(self._writer.write_refusal(row, "its job is no longer in the registry", self._now_ms()))
                self._notify(REFUSED, ended[-1], None, "its job is no longer in the registry")
            except (OSError, MamError) as error:
                self._add_problem(row.rel, error)
                self._due.add(job_id)
        self._save_shown(ended)

    def _save_shown(self, shown: list[LedgerRow]) -> None:
        self._ledger.update(shown)
        for row in shown:
            self.open.pop(row.job_id, None)
            self.jobs.pop(row.job_id, None)
            self._shown[row.job_id] = row

    # -- what is dropped -------------------------------------------------------------------------------------------

    def _scan(self) -> None:
        began = time.monotonic()
        scan = self.tree.scan()
        tracked = self._tracked.now()
        if tracked is None:
            self._wait_for_git(scan)
            return
        self._tracked_files, self._waits_for_git = tracked, False
        self._ingester.problems.extend(scan.problems)
        files = [file for file in scan.prompts if self._accepts(file)]
        ready = self._debouncer.settled(files)
        more, ready = ready[_MAX_FILES_PER_SCAN:], ready[:_MAX_FILES_PER_SCAN]
        for start in range(0, len(ready), BATCH):
            with self._ledger.locked():
                self._load()
                self._record(self._ingester.ingest(ready[start : start + BATCH]))
        self._adopt(scan)
        self.waiting = len(files) - len(ready)
        now = time.monotonic()
        rest = max(SCAN_SECONDS, (now - began) * _SCAN_SHARE if not ready else 0.0)
        settles = self._debouncer.next_in
        self._scan_at = now if more else now + (rest if settles is None else min(rest, settles))

    def _wait_for_git(self, scan: Scan) -> None:
        """Until git has finished, mam cannot know which files belong to the repository."""
        if scan.prompts and not self._waits_for_git:
            self._warn(
                f"git is changing the repository that holds {self.tree.inbox}; its files wait until git has finished"
            )
            self._waits_for_git = True
        self.waiting = len(scan.prompts)
        self._scan_at = time.monotonic() + SCAN_SECONDS

    def _accepts(self, file: PromptFile) -> bool:
        """Whether the file can be ingested. If not, an error is written beside it, once for each version of the
        file."""
        why = self._rejection(file)
        if why is None:
            return True
        noted = self.tree.stat(path_with_state(file.rel, "error"))
        if noted is None or noted.modified_ns < file.changed_ns:
            with self._ledger.locked():
                self._note(file.rel, why)
        return False

    def _rejection(self, file: PromptFile) -> str | None:
        if not file.is_file:
            return "it is a link or not a regular file; copy the file itself"
        if file.uid not in self.settings.uids:
            return f"it belongs to another user (uid {file.uid}); add the user to `owners` in [inbox] of config.toml"
        if file.rel in self._tracked_files:
            return f"it came with a repository (git tracks it); `mam trust {self.tree.inbox}` accepts such files"
        if file.links > 1:
            return "it has another hard link, through which it could change; copy it instead"
        if not os.access(os.path.join(self.tree.inbox, file.rel), os.R_OK):
            return "it cannot be read: Permission denied; `chmod u+r` it"
        try:
            check_name(file.rel)
        except MamError as error:
            return str(error)
        return None

    def _note(self, rel: str, why: str) -> None:
        try:
            self._writer.write_note(rel, why)
            self._notify(LEFT, LedgerRow(job_id="", rel=rel, inode=0, owner="", repo="", branch=""), None, why)
        except OSError as error:
            self._add_problem(rel, error)

    def _record(self, submissions: list[Submission]) -> None:
        shown = []
        for item in submissions:
            if item.job is not None:
                self.open[item.row.job_id] = item.row
                self.jobs[item.row.job_id] = item.job
                self._notify(TAKEN, item.row, item.job, str((item.job.inbox or {}).get("remark", "")))
            elif item.shown is not None:
                shown.append(item.row.replace(state=SHOWN, outcome=item.shown, shown_ms=self._now_ms(), refused=1))
            elif item.unreadable:
                self._note(item.row.rel, str(item.refused))
            else:
                try:
                    shown.append(self._writer.write_refusal(item.row, str(item.refused), self._now_ms()))
                    self._notify(REFUSED, shown[-1], None, str(item.refused))
                except OSError as error:
                    self._add_problem(item.row.rel, error)
        self._save_shown(shown)
        self._update_jobs([item.row.job_id for item in submissions if item.job is not None and item.job.status.ended])

    def _adopt(self, scan: Scan) -> None:
        """Ingest running files without a row. A row is written before the rename, so these are not mam's own."""
        known = {path_with_state(row.rel, "running") for row in self.open.values()}
        strangers = [rel for rel in scan.running if rel not in known and rel not in self._tracked_files]
        if not strangers:
            return
        with self._ledger.locked():
            self._load()
            for rel in strangers:
                if not self._ledger.has_active(path_with_state(rel, "prompt")):
                    found = self._ingester.adopt(rel)
                    self._record([found] if found is not None else [])

    # -- what is over ----------------------------------------------------------------------------------------------

    def _archive_due(self) -> float:
        """Archive outcomes that were shown long enough; returns the seconds until the next one is due."""
        now, archived, next_in = self._now_ms(), [], SCAN_SECONDS
        for row in list(self._shown.values()):
            left = row.shown_ms / 1000 + self.settings.linger_seconds - now / 1000
            if 0 < left <= self.settings.linger_seconds:
                next_in = min(next_in, left)
                continue
            try:
                path = self._writer.archive(row)
                archived.append(row.job_id)
                self._notify(FINISHED, row, None, path)
            except OSError as error:
                self._add_problem(row.outcome, error)
        self._ledger.remove(archived)
        for job_id in archived:
            del self._shown[job_id]
        return next_in

    def _prune(self) -> None:
        if self.settings.keep_days and time.monotonic() >= self._prune_at:
            settings = self.settings
            prune(self._mirror, settings.jobs_root, settings.root, self._now_ms(), settings.keep_days)
            self._prune_at = time.monotonic() + _PRUNE_SECONDS

    def _add_problem(self, rel: str, error: Exception) -> None:
        words = error.strerror if isinstance(error, OSError) else str(error)
        self._ingester.problems.append(f"{rel}: {words}; mam will retry")

    def _now_ms(self) -> int:
        return time.time_ns() // 1_000_000
