"""The hand-over: from a file that somebody dropped to a job in the registry, once, whatever happens in between.

1. a row in the ledger, with the id that the job will have
2. `x.prompt.md` becomes `x.running.md`
3. the job is registered under that id
4. a copy of the prompt in `processed`, and the mirror
5. the row says that the job is open

Whoever is cut off leaves a row behind, and the next holder of the lock goes on from there. docs/inbox.md has a line for
each place where that can happen. Many files are taken at once, since steps 1, 2 and 5 are synced together.
"""

from __future__ import annotations

import os

from mam.errors import AlreadyRegistered, BadInput, MamError, UnknownJob
from mam.frozen import Frozen
from mam.inbox.drafting import drafted
from mam.inbox.ledger import OPEN, Claim
from mam.inbox.names import INBOX, NAME_LIMIT, PROMPT, RUNNING, Target, beside, target_of
from mam.inbox.tree import PROCESSED, exists, move, replace, write_new
from mam.jobs.draft import draft_job
from mam.jobs.rules import TEXT_LIMIT
from mam.work.holding import AWAY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mam.inbox.ledger import Ledger
    from mam.inbox.mirror import Mirror
    from mam.inbox.settings import Settings
    from mam.inbox.tree import Seen, Tree
    from mam.jobs.record import Job
    from mam.registry import Registry

BATCH = 256
NO_INPUT = "NO_INPUT.md"
NO_INPUT_TEXT = "The prompt file {rel} was gone after it had been claimed, so there was nothing to hand to an agent.\n"
_HELD_BACK_MS = 3_600_000
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class Taken(Frozen):
    """What became of one claim."""

    claim: Claim
    job: Job | None = None
    refused: str | None = None
    """Why it could not become a job."""
    shown: str | None = None
    """The file that says so already: whoever wrote it was cut off right after."""
    unreadable: bool = False
    """Nothing of it could be read, so that it was put back."""


class Unreadable(Exception):
    """The system's own words."""


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
        self._mirror = mirror
        self._registry = registry
        self._refusal_of = refusal_of
        """The file that tells why a claim was refused, if there is one."""
        self.troubles: list[str] = []
        """What could not be done, and will be tried again."""

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
        there = self._rename(claims, new=new)
        taken = []
        for claim in there:
            try:
                taken.append(self._hand_over(claim, None if new else self._job(claim), new=new))
            except OSError as error:  # this one waits for better times, and the others do not wait for it
                self.troubles.append(f"{claim.rel}: {error.strerror or error}")
        taken += [
            Taken(claim=claim, shown=rel) for claim in self._withdrawn if (rel := self._refusal_of(claim)) is not None
        ]
        told = {one.claim.job_id for one in taken}
        gone = [claim.job_id for claim in self._withdrawn if claim.job_id not in told]
        opened = [one.claim.replace(state=OPEN) for one in taken if one.job is not None]
        self._ledger.put(opened)
        self._ledger.remove(gone + [one.claim.job_id for one in taken if one.unreadable])
        return [one.replace(claim=one.claim.replace(state=OPEN)) if one.job is not None else one for one in taken]

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
                found = [claim for claim in members if self._job(claim) is not None]
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
            return self._job(claim) is not None
        if inode != claim.inode:
            return self._job(claim) is not None
        move(folder, prompt, folder, running)
        return True

    def _hand_over(self, claim: Claim, job: Job | None, *, new: bool) -> Taken:
        if job is None:
            try:
                content = self._content(claim)
                job = self._register(claim, content)
            except Unreadable as unreadable:
                self._put_back(claim)
                return Taken(claim=claim, refused=f"it cannot be read: {unreadable}", unreadable=True)
            except AWAY:
                raise
            except MamError as bad:
                return Taken(claim=claim, refused=str(bad))
        else:
            content = self._content_again(claim, job)
        self._copy(claim, content, new=new)
        if content is None:
            job = self._without_input(claim, job)
        self._mirror.write(job, claim, new=new)
        return Taken(claim=claim, job=job)

    def _job(self, claim: Claim) -> Job | None:
        try:
            return self._registry.store.get(claim.job_id)
        except UnknownJob:
            return None

    def _content(self, claim: Claim) -> bytes | None:
        """One byte more than may be, so that what is too large shows. None when somebody took it away."""
        try:
            with self._tree.folder(INBOX, os.path.dirname(claim.rel)) as folder:
                name = os.path.basename(beside(claim.rel, RUNNING))
                return read_whole(folder, name, TEXT_LIMIT + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Unreadable(error.strerror or str(error)) from None

    def _content_again(self, claim: Claim, job: Job) -> bytes | None:
        """Registered before we were cut off: the registry has the prompt, whatever became of the file since."""
        try:
            content = self._content(claim)
        except Unreadable:
            content = None
        if content is None and job.prompt != NO_INPUT_TEXT.format(rel=claim.rel).strip("\n"):
            content = job.prompt.encode(errors="replace")
        return content

    def _register(self, claim: Claim, content: bytes | None) -> Job:
        target = target_of(claim.rel, self._settings.mode, self._settings.owner, self._settings.here)
        check_name(claim.rel)
        text = NO_INPUT_TEXT.format(rel=claim.rel).encode() if content is None else content
        draft = drafted(text, target, claim.rel, self._settings)
        choices = dict(draft.choices)
        if content is None:  # nobody shall claim what is about to be called a failure
            choices["due_ms"] = self._registry.store.clock.now().wall_ms + _HELD_BACK_MS
        choices["after"] = [self._registry.resolve(needed) for needed in choices.get("after", ())]
        job = draft_job(job_id=claim.job_id, prompt=draft.prompt, agent=draft.agent, **choices)
        try:
            # Past the registry's own verb, which copies the audit log at each: the worker's thread copies it for many.
            return self._registry.store.register(job).job
        except AlreadyRegistered:
            return self._registry.store.get(claim.job_id)

    def _copy(self, claim: Claim, content: bytes | None, *, new: bool) -> None:
        """Not synced: the inbox and the registry both have it. What is cut off in the middle is written again."""
        with self._tree.folder(PROCESSED, claim.target.path, claim.job_id, make=True, durable=False) as folder:
            if content is None:
                replace(folder, NO_INPUT, NO_INPUT_TEXT.format(rel=claim.rel).encode(), durable=False)
            elif new:
                write_new(folder, "prompt.md", (content,), durable=False)
            else:
                replace(folder, "prompt.md", content, durable=False)

    def _without_input(self, claim: Claim, job: Job) -> Job:
        if job.status.ended:
            return job
        return self._registry.fail(job.job_id, reason=f"the prompt file {claim.rel} was gone after it had been claimed")

    def _put_back(self, claim: Claim) -> None:
        """What mam may not read it cannot keep either; it stays what it was, and the error stands beside it."""
        with self._tree.folder(INBOX, os.path.dirname(claim.rel)) as folder:
            move(folder, os.path.basename(beside(claim.rel, RUNNING)), folder, os.path.basename(claim.rel))


def read_whole(folder: int, name: str, limit: int) -> bytes:
    descriptor = os.open(name, _READ, dir_fd=folder)
    try:
        parts = []
        while limit > 0 and (part := os.read(descriptor, min(limit, 1 << 20))):
            parts.append(part)
            limit -= len(part)
    finally:
        os.close(descriptor)
    return b"".join(parts)


def check_name(rel: str) -> None:
    """What goes into records and onto terminals."""
    try:
        rel.encode()
    except UnicodeEncodeError:
        raise BadInput(why="its path is not UTF-8; rename it") from None
    if not rel.isprintable():
        raise BadInput(why="its path has a control character; rename it")
    if len(os.path.basename(rel).encode()) > NAME_LIMIT:
        raise BadInput(why=f"its name has more than {NAME_LIMIT} bytes; give it a shorter one")
