"""Steps 3 and 4 of ingesting: register rows as jobs, copy the prompts to `processed`, and write the mirror.

Files are submitted in small batches: one transaction and one sync for each batch, with its prompts in memory.
"""

from __future__ import annotations

import os

from mam.errors import AlreadyRegistered, BadInput, MamError, UnknownJob
from mam.inbox.draft import draft_from_file
from mam.inbox.ledger import LedgerRow
from mam.inbox.names import INBOX, RUNNING, check_name, parse_target, path_with_state
from mam.inbox.tree import PROCESSED, move, replace, write_new
from mam.jobs.draft import draft_job
from mam.jobs.input_rules import TEXT_LIMIT
from mam.jobs.record import Job
from mam.util.frozen import Frozen
from mam.work.claim import STORE_UNREACHABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.inbox.mirror import Mirror
    from mam.inbox.settings import Settings
    from mam.inbox.tree import Tree
    from mam.registry import Registry

FILES_AT_ONCE, BYTES_AT_ONCE = 64, 4 << 20
COPY, NO_INPUT = "prompt.md", "NO_INPUT.md"
NO_INPUT_TEXT = "The prompt file {rel} was gone after it had been claimed, so there was nothing to hand to an agent.\n"
_HELD_BACK_MS = 3_600_000
_DATA_ERRORS = (ValueError, TypeError, ArithmeticError, RecursionError)
"""What a store raises for a value that passed every check; any other exception may be a problem of the store."""
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class Submission(Frozen):
    """The result of submitting one row."""

    row: LedgerRow
    job: Job | None = None
    """Without its prompt, because many of these are kept."""
    refused: str | None = None
    """Why it could not become a job."""
    shown: str | None = None
    """The existing outcome file of a refusal: mam was killed after writing it."""
    unreadable: bool = False
    """The file could not be read and was renamed back."""


class _LoadedFile(Frozen):
    """A file with its content, ready to become a job."""

    row: LedgerRow
    content: bytes | None
    """None if the file was removed."""
    job: Job
    """The draft, or the job if it is already registered."""
    is_registered: bool


class Unreadable(Exception):
    """The message of the operating system."""


class Submitter:
    """Every method is called with the ledger's lock held."""

    def __init__(self, settings: Settings, tree: Tree, mirror: Mirror, registry: Registry, problems: list[str]) -> None:
        self._settings = settings
        self._tree = tree
        self._mirror = mirror
        self._registry = registry
        self._problems = problems

    def submit(self, rows: list[LedgerRow], *, new: bool) -> list[Submission]:
        """Submit rows. `new` means that no earlier attempt has started on any of them."""
        submissions: list[Submission] = []
        for batch in self._batches(rows, submissions, new=new):
            jobs = self._register([item.job for item in batch if not item.is_registered])
            for item in batch:
                job = item.job if item.is_registered else jobs[item.row.job_id]
                if isinstance(job, MamError):
                    submissions.append(Submission(row=item.row, refused=str(job)))
                    continue
                try:
                    submissions.append(Submission(row=item.row, job=self._store_copies(item, job, new=new)))
                except OSError as error:  # this one is retried later, and does not delay the others
                    self._add_problem(item.row, error)
        return submissions

    def find_job(self, row: LedgerRow) -> Job | None:
        try:
            return self._registry.get_exact(row.job_id)
        except UnknownJob:
            return None

    def repair_copy(self, row: LedgerRow) -> None:
        """Repair the copy of an open job: it was not synced, and a power cut may have lost it."""
        job = self.find_job(row)
        if job is None:
            return
        try:
            with self._tree.folder(PROCESSED, row.target.path, row.job_id) as folder:
                copied = read_file(folder, COPY, TEXT_LIMIT + 1)
        except FileNotFoundError:
            copied = b""
        if job.prompt.encode(errors="replace") not in copied:
            self._copy(row, self._reload(row, job).content, new=False)

    def _batches(
        self, rows: list[LedgerRow], submissions: list[Submission], *, new: bool
    ) -> Iterator[list[_LoadedFile]]:
        """Yields batches of files that can become jobs; the results of the others go to `submissions`."""
        batch: list[_LoadedFile] = []
        size = 0
        for row in rows:
            try:
                job = None if new else self.find_job(row)
                batch.append(self._load(row) if job is None else self._reload(row, job))
                size += len(batch[-1].content or b"")
            except Unreadable as unreadable:
                submissions.append(Submission(row=row, refused=f"it cannot be read: {unreadable}", unreadable=True))
            except OSError as error:
                self._add_problem(row, error)
            except STORE_UNREACHABLE:
                raise
            except MamError as bad:
                submissions.append(Submission(row=row, refused=str(bad)))
            except Exception as bug:  # a bug in mam: one file must not stop the others at each start
                submissions.append(Submission(row=row, refused=_unexpected(bug)))
            if len(batch) >= FILES_AT_ONCE or size >= BYTES_AT_ONCE:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch

    # -- reading ---------------------------------------------------------------------------------------------------

    def _load(self, row: LedgerRow) -> _LoadedFile:
        try:
            content = self._content(row)
        except Unreadable:
            self._put_back(row)
            raise
        return _LoadedFile(row=row, content=content, job=self._draft(row, content), is_registered=False)

    def _reload(self, row: LedgerRow, job: Job) -> _LoadedFile:
        """Registered before the interruption: the registry has the prompt, whatever happened to the file."""
        try:
            content = self._content(row)
        except Unreadable:
            content = None
        prompt = job.prompt.encode(errors="replace")
        if prompt not in (content or b"") and job.prompt != NO_INPUT_TEXT.format(rel=row.rel).strip("\n"):
            content = prompt
        return _LoadedFile(row=row, content=content, job=job, is_registered=True)

    def _content(self, row: LedgerRow) -> bytes | None:
        """The content, one byte longer than the limit if it is too large. None if the file was removed."""
        try:
            with self._tree.folder(INBOX, os.path.dirname(row.rel)) as folder:
                name = os.path.basename(path_with_state(row.rel, RUNNING))
                return read_file(folder, name, TEXT_LIMIT + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Unreadable(error.strerror or str(error)) from None

    def _put_back(self, row: LedgerRow) -> None:
        """Rename an unreadable file back to its prompt name; an error is written beside it."""
        with self._tree.folder(INBOX, os.path.dirname(row.rel)) as folder:
            move(folder, os.path.basename(path_with_state(row.rel, RUNNING)), folder, os.path.basename(row.rel))

    # -- registering -----------------------------------------------------------------------------------------------

    def _draft(self, row: LedgerRow, content: bytes | None) -> Job:
        settings = self._settings
        # A row without an owner has an invalid path, and parse_target raises the reason.
        target = row.target if row.owner else parse_target(row.rel, settings.mode, settings.owner, settings.here)
        check_name(row.rel)
        text = NO_INPUT_TEXT.format(rel=row.rel).encode() if content is None else content
        draft = draft_from_file(text, target, row.rel, settings)
        choices = dict(draft.choices)
        if content is None:  # no worker may claim it before mam marks it as an error
            choices["due_ms"] = self._registry.store.clock.now().wall_ms + _HELD_BACK_MS
        choices["after"] = [self._registry.resolve(needed) for needed in choices.get("after", ())]
        job = draft_job(job_id=row.job_id, prompt=draft.prompt, agent=draft.agent, broker=settings.broker, **choices)
        self._registry.prepare_signing(job)
        return job

    def _register(self, drafts: list[Job]) -> dict[str, Job | MamError]:
        """The job or the error of each id.

        This calls the store and not the registry, which would update the audit log for each job: the worker's thread
        updates it for many at once.
        """
        if not any(draft.after for draft in drafts):
            try:
                return {job.job_id: job for job in self._registry.store.register_all(drafts)}
            except STORE_UNREACHABLE:
                raise
            except (MamError, *_DATA_ERRORS):
                pass  # registered one by one, each returns its own error
        return {draft.job_id: self._register_one(draft) for draft in drafts}

    def _register_one(self, draft: Job) -> Job | MamError:
        try:
            return self._registry.store.register(draft).job
        except STORE_UNREACHABLE:
            raise
        except AlreadyRegistered:
            return self._registry.get_exact(draft.job_id)
        except MamError as bad:
            return bad
        except _DATA_ERRORS as bug:
            return BadInput(why=_unexpected(bug))

    # -- what others see of it -------------------------------------------------------------------------------------

    def _store_copies(self, item: _LoadedFile, job: Job, *, new: bool) -> Job:
        self._copy(item.row, item.content, new=new)
        if item.content is None and not job.status.ended:
            reason = f"the prompt file {item.row.rel} was gone after it had been claimed"
            job = self._registry.fail(job.job_id, reason=reason)
        self._mirror.write(job, item.row, new=new)
        return job.replace(prompt="")

    def _copy(self, row: LedgerRow, content: bytes | None, *, new: bool) -> None:
        """Not synced: the inbox and the registry both have the prompt. An incomplete copy is written again."""
        with self._tree.folder(PROCESSED, row.target.path, row.job_id, make=True, durable=False) as folder:
            if content is None:
                replace(folder, NO_INPUT, NO_INPUT_TEXT.format(rel=row.rel).encode(), durable=False)
            elif new:
                write_new(folder, COPY, (content,), durable=False)
            else:
                replace(folder, COPY, content, durable=False)

    def _add_problem(self, row: LedgerRow, error: OSError) -> None:
        self._problems.append(f"{row.rel}: {error.strerror or error}")


def _unexpected(bug: Exception) -> str:
    return f"mam cannot read it ({type(bug).__name__}); please report this with the file"


def read_file(folder: int, name: str, limit: int) -> bytes:
    descriptor = os.open(name, _READ, dir_fd=folder)
    try:
        parts = []
        while limit > 0 and (part := os.read(descriptor, min(limit, 1 << 20))):
            parts.append(part)
            limit -= len(part)
    finally:
        os.close(descriptor)
    return b"".join(parts)
