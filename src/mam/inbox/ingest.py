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
from mam.inbox.ledger import OPEN, Claim
from mam.inbox.names import INBOX, PROMPT, RUNNING, Target, beside, target_of
from mam.inbox.submit import Handing, Taken
from mam.inbox.tree import exists, move
from mam.work.claim import STORE_UNREACHABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mam.inbox.ledger import Ledger
    from mam.inbox.mirror import Mirror
    from mam.inbox.settings import Settings
    from mam.inbox.tree import Seen, Tree
    from mam.registry import Registry

BATCH = 256


class Taking:
    """Every method is called with the ledger's lock held."""

    def __init__(
        self,
        settings: Settings,
        tree: Tree,
        ledger: Ledger,
        mirror: Mirror,
        registry: Registry,
        refusal_of: Callable[[Claim], str | None],
    ) -> None:
        self._settings = settings
        self._tree = tree
        self._ledger = ledger
        self._registry = registry
        self._refusal_of = refusal_of
        """The file that tells why a claim was refused, if there is one."""
        self.troubles: list[str] = []
        """What could not be done, and will be tried again."""
        self._handing = Handing(settings, tree, mirror, registry, self.troubles)

    def take(self, seen: Iterable[Seen]) -> list[Taken]:
        """Claim these and hand them over. What another watcher has claimed meanwhile is passed over."""
        with self._tree.kept_open():
            return self._take(seen)

    def _take(self, seen: Iterable[Seen]) -> list[Taken]:
        claims = [
            self._claim(one)
            for one in seen
            if not self._ledger.holds(one.rel) and self._tree.signature(one.rel) == one and not self._runs(one.rel)
        ]
        self._ledger.add(claims)
        return self._onward(claims, new=True)

    def go_on(self, claims: list[Claim]) -> list[Taken]:
        """From wherever somebody left them."""
        with self._tree.kept_open():
            return self._onward(claims, new=False)

    def _onward(self, claims: list[Claim], *, new: bool) -> list[Taken]:
        taken = self._handing.hand_over(self._rename(claims, new=new), new=new)
        taken += [
            Taken(claim=claim, shown=rel) for claim in self._withdrawn if (rel := self._refusal_of(claim)) is not None
        ]
        told = {one.claim.job_id for one in taken}
        gone = [claim.job_id for claim in self._withdrawn if claim.job_id not in told]
        opened = [one.claim.replace(state=OPEN) for one in taken if one.job is not None]
        self._ledger.put(opened)
        self._ledger.remove(gone + [one.claim.job_id for one in taken if one.unreadable])
        return [one.replace(claim=one.claim.replace(state=OPEN)) if one.job is not None else one for one in taken]

    def mend_copies(self, claims: Iterable[Claim]) -> None:
        for claim in claims:
            try:
                self._handing.mend_copy(claim)
            except STORE_UNREACHABLE:
                raise
            except (MamError, OSError) as error:
                self.troubles.append(f"{claim.rel}: {error}")

    def adopt(self, rel: str) -> Taken | None:
        """A file that is called running and that no row knows: left by the older watcher, or by a lost ledger."""
        seen = self._tree.signature(rel)
        if seen is None or not seen.is_file:
            return None
        claim = self._claim(seen.replace(rel=beside(rel, PROMPT)))
        self._ledger.add([claim])
        return next(iter(self.go_on([claim])), None)

    # -- steps -----------------------------------------------------------------------------------------------------

    def _runs(self, rel: str) -> bool:
        """The same name again waits until the one before it has ended."""
        return self._tree.signature(beside(rel, RUNNING)) is not None

    def _claim(self, seen: Seen) -> Claim:
        settings = self._settings
        try:
            target = target_of(seen.rel, settings.mode, settings.owner, settings.here)
        except BadInput:  # said again, and acted upon, once the file is ours
            target = Target(owner="", repo="", branch="")
        return Claim(job_id=self._registry.store.clock.new_id(), rel=seen.rel, inode=seen.inode, **target.as_dict())

    def _rename(self, claims: list[Claim], *, new: bool) -> list[Claim]:
        """Those whose file, or whose job, is there. Each directory is synced once."""
        there: list[Claim] = []
        self._withdrawn: list[Claim] = []
        folders: dict[str, list[Claim]] = {}
        for claim in claims:
            folders.setdefault(os.path.dirname(claim.rel), []).append(claim)
        for name, members in folders.items():
            try:
                with self._tree.folder(INBOX, name) as folder:
                    rename = self._rename_new if new else self._rename_one
                    found = [claim for claim in members if rename(folder, claim)]
                    os.fsync(folder)
            except (FileNotFoundError, NotADirectoryError):
                found = [claim for claim in members if self._handing.job_of(claim) is not None]
            except OSError as error:
                self.troubles.append(f"{os.path.join(INBOX, name)}: {error.strerror or error}")
                continue
            there += found
            ids = {claim.job_id for claim in found}
            self._withdrawn += [claim for claim in members if claim.job_id not in ids]
        return there

    def _rename_new(self, folder: int, claim: Claim) -> bool:
        """Just looked at, so there is nothing to find out first."""
        try:
            move(folder, os.path.basename(claim.rel), folder, os.path.basename(beside(claim.rel, RUNNING)))
        except (FileNotFoundError, FileExistsError):
            return False
        return True

    def _rename_one(self, folder: int, claim: Claim) -> bool:
        prompt = os.path.basename(claim.rel)
        running = os.path.basename(beside(claim.rel, RUNNING))
        if exists(folder, running):
            return True
        try:
            inode = os.stat(prompt, dir_fd=folder, follow_symlinks=False).st_ino
        except FileNotFoundError:
            # Not our file any more: withdrawn before the rename, or, when there is a job, removed after it.
            return self._handing.job_of(claim) is not None
        if inode != claim.inode:
            return self._handing.job_of(claim) is not None
        move(folder, prompt, folder, running)
        return True
