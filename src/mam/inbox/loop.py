"""One inbox at work: looks, takes, follows the jobs, shows what became of them. `turn` is all of it once.

It holds nothing that matters: what was claimed is in the ledger, what runs is in the registry, and what was dropped is
in the tree, which is looked at anew whenever something happened, and now and then even if nothing seems to have.
"""

from __future__ import annotations

import os
import time

from mam.errors import MamError, UnknownJob
from mam.inbox.debounce import Settling
from mam.inbox.deliver import Putting
from mam.inbox.ingest import BATCH, Taking
from mam.inbox.ledger import CLAIMED, OPEN, SHOWN, Claim, Ledger
from mam.inbox.mirror import Mirror
from mam.inbox.names import beside, check_name
from mam.inbox.repair import prune, remembered, repair
from mam.inbox.tree import QUEUE, Tree
from mam.location.ownership import TrackedFiles
from mam.location.stores import ignore_in_git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable

    from mam.inbox.settings import Settings
    from mam.inbox.submit import Taken
    from mam.inbox.tree import Look, Seen
    from mam.jobs.record import Job
    from mam.registry import Registry

    Told = Callable[[str, Claim, Job | None, str], None]

TAKEN, REFUSED, ENDED, LEFT, FINISHED = "taken", "refused", "ended", "left", "finished"
"""What is told of a file: it became a job; it cannot; its job has ended; it stays as it is; it was put away."""
LOOK_SECONDS = 5.0
"""How often the tree is looked at although nothing was seen; less often, if a look takes long."""
_LOOK_SHARE = 1000.0
_AGAIN_SECONDS = 2.0
_MOST_AT_ONCE = 4 * BATCH
"""Files that are taken before the jobs are looked at again."""
_PRUNE_SECONDS = 3600.0


class Inbox:
    def __init__(self, settings: Settings, registry: Registry, told: Told, complain: Callable[[str], None]) -> None:
        self.settings = settings
        self._registry = registry
        self._told = told
        self._complain = complain
        self.tree = Tree(settings.root)
        self.tree.make()
        if os.path.basename(settings.root) == ".mam":
            ignore_in_git(settings.root)
        self._ledger = Ledger(os.path.join(settings.root, QUEUE))
        if self._ledger.belong(registry.store.journal_id, registry.store.address, settings.root):
            with self._ledger.locked():
                self._ledger.add(remembered(registry.store, settings))
        self._mirror = Mirror(settings.jobs_root, settings.root)
        self._mirror.make()
        self._putting = Putting(settings, self.tree, self._mirror)
        self._taking = Taking(
            settings, self.tree, self._ledger, self._mirror, registry, self._putting.refusal_of
        )  # fmt: skip
        self._settling = Settling(self.tree, settings.settle_seconds)
        self._tracked = TrackedFiles(self.tree.inbox)
        self._brought: Container[str] = frozenset()
        self._waits_for_git = False
        self.open: dict[str, Claim] = {}
        """Jobs whose end is still to be shown."""
        self.jobs: dict[str, Job] = {}
        """The same jobs as they were when they were last looked at, without their prompts."""
        self._shown: dict[str, Claim] = {}
        self._version = -1
        self._due: set[str] = set()
        """Jobs to look at although no news of them will come."""
        self._look_at = self._prune_at = 0.0
        self._repaired = False
        self.waiting = 0
        """Prompt files that were seen and not yet taken."""

    @property
    def troubles(self) -> list[str]:
        """Of the last turn: what did not work and will be tried again."""
        return self._taking.troubles

    def close(self) -> None:
        self._ledger.close()

    def turn(self, changed: Iterable[str] | None = None, *, look: bool = True) -> float:
        """Everything that is to be done now; seconds until there may be more. `changed` are the jobs that news came of,
        None for all."""
        self._taking.troubles.clear()
        with self._ledger.locked():
            self._load()
            self._finish_left_behind()
            due, self._due = self._due, set()
            self._follow({*(self.open if changed is None else changed), *due})
        if look or time.monotonic() >= self._look_at:
            self._look()
        with self._ledger.locked():
            next_away = self._put_away()
            self._prune()
        for trouble in self.troubles:
            self._complain(trouble)
        again = _AGAIN_SECONDS if self._taking.troubles else LOOK_SECONDS
        return max(0.005, min(again, next_away, self._look_at - time.monotonic()))

    # -- what is known ---------------------------------------------------------------------------------------------

    def _load(self) -> None:
        """Only anew if another watcher was here."""
        version = self._ledger.version()
        if version == self._version and self._repaired:
            return
        self._version = version
        known = self.open.keys()
        self.open = {claim.job_id: claim for claim in self._ledger.claims(OPEN)}
        self._due |= self.open.keys() - known  # their news may have come before they were known
        self._shown = {claim.job_id: claim for claim in self._ledger.claims(SHOWN)}
        if not self._repaired:
            settings = self.settings
            for trouble in repair(self._mirror, settings.jobs_root, settings.root, self._registry, self.open):
                self._complain(trouble)
            self._taking.mend_copies(self.open.values())
            self._repaired = True

    def _finish_left_behind(self) -> None:
        """With the lock in our hands nobody else can be in the middle of these."""
        left_behind = self._ledger.claims(CLAIMED)
        if left_behind:
            self._received(self._taking.go_on(left_behind))

    def _follow(self, job_ids: Iterable[str]) -> None:
        ended = []
        for job_id in list(job_ids):
            claim = self.open.get(job_id)
            if claim is None:
                continue
            try:
                job = self._registry.stored(job_id)
                if job.status.ended:
                    ended.append(self._putting.show(claim, job, self._now_ms()))
                    self._told(ENDED, ended[-1], job, "")
                else:
                    self.jobs[job_id] = job.replace(prompt="")
                    self._mirror.write(job, claim)
            except UnknownJob:
                ended.append(self._putting.show_refusal(claim, "its job is no longer in the registry", self._now_ms()))
                self._told(REFUSED, ended[-1], None, "its job is no longer in the registry")
            except (OSError, MamError) as error:
                self._trouble(claim.rel, error)
                self._due.add(job_id)
        self._remember(ended)

    def _remember(self, shown: list[Claim]) -> None:
        self._ledger.put(shown)
        for claim in shown:
            self.open.pop(claim.job_id, None)
            self.jobs.pop(claim.job_id, None)
            self._shown[claim.job_id] = claim

    # -- what is dropped -------------------------------------------------------------------------------------------

    def _look(self) -> None:
        began = time.monotonic()
        look = self.tree.look()
        tracked = self._tracked.now()
        if tracked is None:
            self._wait_for_git(look)
            return
        self._brought, self._waits_for_git = tracked, False
        self._taking.troubles.extend(look.problems)
        files = [seen for seen in look.prompts if self._is_fit(seen)]
        ready = self._settling.settled(files)
        more, ready = ready[_MOST_AT_ONCE:], ready[:_MOST_AT_ONCE]
        for start in range(0, len(ready), BATCH):
            with self._ledger.locked():
                self._load()
                self._received(self._taking.take(ready[start : start + BATCH]))
        self._adopt(look)
        self.waiting = len(files) - len(ready)
        now = time.monotonic()
        rest = max(LOOK_SECONDS, (now - began) * _LOOK_SHARE if not ready else 0.0)
        settles = self._settling.next_in
        self._look_at = now if more else now + (rest if settles is None else min(rest, settles))

    def _wait_for_git(self, look: Look) -> None:
        """Which files come with the repository is known when git has ended."""
        if look.prompts and not self._waits_for_git:
            self._complain(f"git is changing the repository that holds {self.tree.inbox}; its files wait until it ends")
            self._waits_for_git = True
        self.waiting = len(look.prompts)
        self._look_at = time.monotonic() + LOOK_SECONDS

    def _is_fit(self, seen: Seen) -> bool:
        """What cannot be claimed at all gets an error beside it, once, and once more when it has changed."""
        why = self._unfit(seen)
        if why is None:
            return True
        noted = self.tree.signature(beside(seen.rel, "error"))
        if noted is None or noted.modified_ns < seen.changed_ns:
            with self._ledger.locked():
                self._note(seen.rel, why)
        return False

    def _unfit(self, seen: Seen) -> str | None:
        if not seen.is_file:
            return "it is a link or no file at all, and mam follows none; copy the file itself"
        if seen.uid not in self.settings.uids:
            return f"it belongs to another user (uid {seen.uid}); `owners` in [inbox] of config.toml says whose count"
        if seen.rel in self._brought:
            return f"it came with a repository (git tracks it); `mam trust {self.tree.inbox}` lets such files count"
        if seen.links > 1:
            return "it has another name elsewhere (a hard link), under which somebody could change it; copy it instead"
        if not os.access(os.path.join(self.tree.inbox, seen.rel), os.R_OK):
            return "it cannot be read: Permission denied; `chmod u+r` it"
        try:
            check_name(seen.rel)
        except MamError as error:
            return str(error)
        return None

    def _note(self, rel: str, why: str) -> None:
        try:
            self._putting.note(rel, why)
            self._told(LEFT, Claim(job_id="", rel=rel, inode=0, owner="", repo="", branch=""), None, why)
        except OSError as error:
            self._trouble(rel, error)

    def _received(self, taken: list[Taken]) -> None:
        shown = []
        for one in taken:
            if one.job is not None:
                self.open[one.claim.job_id] = one.claim
                self.jobs[one.claim.job_id] = one.job
                self._told(TAKEN, one.claim, one.job, "")
            elif one.shown is not None:
                shown.append(one.claim.replace(state=SHOWN, outcome=one.shown, shown_ms=self._now_ms(), refused=1))
            elif one.unreadable:
                self._note(one.claim.rel, str(one.refused))
            else:
                try:
                    shown.append(self._putting.show_refusal(one.claim, str(one.refused), self._now_ms()))
                    self._told(REFUSED, shown[-1], None, str(one.refused))
                except OSError as error:
                    self._trouble(one.claim.rel, error)
        self._remember(shown)
        self._follow([one.claim.job_id for one in taken if one.job is not None and one.job.status.ended])

    def _adopt(self, look: Look) -> None:
        """Files that are called running and that no row knows. Rows come before names, so none of these is ours."""
        known = {beside(claim.rel, "running") for claim in self.open.values()}
        strangers = [rel for rel in look.running if rel not in known and rel not in self._brought]
        if not strangers:
            return
        with self._ledger.locked():
            self._load()
            for rel in strangers:
                if not self._ledger.holds(beside(rel, "prompt")):
                    found = self._taking.adopt(rel)
                    self._received([found] if found is not None else [])

    # -- what is over ----------------------------------------------------------------------------------------------

    def _put_away(self) -> float:
        """Outcomes that have been seen for long enough; seconds until the next one is due."""
        now, gone, next_in = self._now_ms(), [], LOOK_SECONDS
        for claim in list(self._shown.values()):
            left = claim.shown_ms / 1000 + self.settings.linger_seconds - now / 1000
            if 0 < left <= self.settings.linger_seconds:
                next_in = min(next_in, left)
                continue
            try:
                path = self._putting.put_away(claim)
                gone.append(claim.job_id)
                self._told(FINISHED, claim, None, path)
            except OSError as error:
                self._trouble(claim.outcome, error)
        self._ledger.remove(gone)
        for job_id in gone:
            del self._shown[job_id]
        return next_in

    def _prune(self) -> None:
        if self.settings.keep_days and time.monotonic() >= self._prune_at:
            settings = self.settings
            prune(self._mirror, settings.jobs_root, settings.root, self._now_ms(), settings.keep_days)
            self._prune_at = time.monotonic() + _PRUNE_SECONDS

    def _trouble(self, rel: str, error: Exception) -> None:
        words = error.strerror if isinstance(error, OSError) else str(error)
        self._taking.troubles.append(f"{rel}: {words}; it is tried again")

    def _now_ms(self) -> int:
        return time.time_ns() // 1_000_000
