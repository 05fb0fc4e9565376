"""The port: what every store promises.

A store never decides what may happen to a job. It finds the job, calls a pure act inside its lock or transaction, and
writes the resulting change as one atomic entry of its journal. `mam.testing.conformance` tests these promises.
"""

from __future__ import annotations

from mam.jobs.change import Change
from mam.jobs.record import Job
from mam.jobs.status import Status
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, Protocol

    from mam.jobs.change import AuditRecord
    from mam.jobs.credential import Credential
    from mam.jobs.ending import End
    from mam.jobs.generation import Generations
    from mam.jobs.pause import Pause
    from mam.jobs.workers import WorkerEntry
    from mam.stores.interest import Interest
    from mam.stores.outputs import Outputs
    from mam.util.clock import Clock, Moment

    Act = Callable[[Job, Moment], Change]


class ClaimRequest(Frozen):
    """A request for work: the label, the name of the claimer, and how long the claim is valid."""

    label: str
    owner: str
    lease_seconds: float | None = None
    """None: the job's `timeout_sec`."""
    claim_id: str | None = None
    """The id of the claim; without one the store generates it."""
    supervised: bool = False
    """Whether a worker claims, which verifies the outcome itself."""
    job_id: str | None = None
    """Claims only this job, if it can be claimed now; None claims the first job of the label."""
    host: str = ""
    """The host that claims: it gets the continuations of conversations that it has. Without one, it gets none."""
    agent_id: str | None = None
    generation_id: str | None = None
    """The session that claims, both or neither. A newer generation that announces itself releases the claim."""


class Registration(Frozen):
    job: Job
    created: bool
    """False when a job with this key, or a retry of the same job, was registered before; `job` is that one."""


class Query(Frozen):
    """Which jobs; None means any."""

    statuses: frozenset[Status] | None = None
    label: str | None = None
    since: str | None = None
    """Created at this second or later."""
    asking: bool = False
    """Only jobs with an open question."""
    below: int | None = None
    """Only jobs with a lower number: the next page of a list."""


class QueuedJob(Frozen):
    """The fields of a pending job that decide when it is claimed."""

    job_id: str
    label: str
    agent: str
    priority: int
    number: int


class Entry(Frozen):
    """One change of one job, as the journal keeps it."""

    offset: str
    """The position after this entry. Only the store that returned it can read it."""
    number: int
    """Numbers rise in commit order; there may be gaps."""
    job_id: str
    fields: dict[str, Any] | None
    """The fields that changed, with their new values; None when the job is gone."""
    lines: tuple[AuditRecord, ...]


class JobWithEvents(Frozen):
    """A job with all its events."""

    job: Job
    events: list[AuditRecord]
    """As `Store.events` returns them."""


class Problem(Frozen):
    """Something in the store that mam left alone and that a person should check."""

    file: str
    problem: str
    mend: str | None = None
    """The command that repairs it."""


if TYPE_CHECKING:

    class Store(Protocol):
        """One registry of jobs."""

        @property
        def address(self) -> str:
            """What the user would pass to `--store`, without secrets."""

        @property
        def journal_id(self) -> str:
            """The epoch of this journal; a rebuilt store has a new one."""

        @property
        def home(self) -> str | None:
            """A private directory beside the data, for other files of mam; None if there is none."""

        @property
        def clock(self) -> Clock: ...

        @property
        def outputs(self) -> Outputs:
            """What the attempts left behind: output, diffs, artifacts (mam.stores.outputs)."""

        def register(self, draft: Job) -> Registration:
            """Register a new job. Its number is higher than any before.

            A repeated `key`, or a second retry of the same job, returns the first job and writes nothing.
            Raises AlreadyRegistered when another job has the id. Durable when it returns.
            """

        def register_all(self, drafts: Sequence[Job]) -> list[Job]:
            """Register many new jobs in one act, in this order: all of them or none.

            Only for jobs without a key and without dependencies that retry no other job. Raises
            AlreadyRegistered when another job has one of the ids. Durable when it returns.
            """

        def change(self, job_id: str, act: Act) -> Job:
            """Apply an act to one job, atomically, and return the job after it.

            The act gets the job as it is under the lock, and the store's time. If it raises, nothing changes; if it
            returns no lines, nothing is written. Raises UnknownJob. Durable when it returns.
            """

        def end_job(self, job_id: str, ended: End) -> Job:
            """The same as `change` with `mam.jobs.ending.end`; a store may do it in one statement."""

        def claim(self, request: ClaimRequest) -> Job | None:
            """Claim the first job of exactly this label: highest priority, then lowest number.

            Settles due jobs first, as `sweep` does. Skips jobs that a pause or an exclusive key in use holds back.
            Two claimers never get the same attempt of a job. The cost does not grow with the number of jobs. Returns
            None when there is nothing to claim. Raises GenerationLost when a newer generation replaced the session.
            """

        def announce(self, agent_id: str, generation_id: str) -> list[Job]:
            """Make this generation of the session the current one (mam.jobs.generation).

            The jobs that an older generation holds return to pending, and are returned; the older one cannot claim any
            more. Raises GenerationLost when a newer one replaced this one. A repeat changes nothing. A claim that
            names a session announces it first. Durable when it returns.
            """

        def generations(self) -> dict[str, Generations]:
            """The generations of each session, by agent id."""

        def sweep(self) -> list[Job]:
            """Move due jobs (mam.jobs.sweep), and jobs whose dependencies have ended (mam.jobs.dependency): longest due
            first, at most SWEEP_LIMIT jobs of each kind."""

        def get(self, job_id: str) -> Job:
            """The job of exactly this id. Raises UnknownJob, or BadRecord if it cannot be read."""

        def ids_with_prefix(self, prefix: str, limit: int) -> list[str]:
            """Ids with this prefix, in order, at most `limit`."""

        def children(self, job_id: str) -> list[str]:
            """Ids of the jobs that this job registered, oldest first. The cost does not grow with the number of other
            jobs."""

        def select(self, query: Query) -> Iterator[Job]:
            """The jobs that match, newest (highest number) first."""

        def queue(self, label: str | None = None, since: str | None = None) -> list[QueuedJob]:
            """The pending jobs (of this label, not created before this second), in the order of their numbers. There
            may be very many, so this reads no whole records."""

        def counts(self) -> dict[str, int]:
            """The number of jobs of each status that has any."""

        def ended_before(self, before: str) -> dict[str, int]:
            """The number of jobs that ended before this second, by status, without reading each of them."""

        def ahead_of(self, job: Job) -> int:
            """The number of pending jobs of the same label that would be claimed before this one."""

        def newest(self, job_id: str) -> Job | None:
            """The last retry of this job, or the job itself, also from the archive; None when there is none."""

        def holder(self, key: str) -> str | None:
            """The job that runs under this exclusive key."""

        def pauses(self) -> list[Pause]:
            """Every stored pause, including those that have expired."""

        def pause(self, pause: Pause) -> None:
            """Store the pause; it replaces one for the same agent and label. Like `resume`, wakes waiting processes."""

        def resume(self, agent: str | None, label: str | None) -> bool:
            """Lift the pause of exactly this agent and label; False when there is none."""

        def note_worker(self, entry: WorkerEntry) -> str | None:
            """Store or renew the entry of a worker. Returns what a person asked of it, if anything. Wakes nothing."""

        def workers(self) -> list[WorkerEntry]:
            """Every stored worker, including those whose lease has expired."""

        def ask_worker(self, name: str, what: str) -> bool:
            """Ask a worker to drain or to stop; it learns of it from `note_worker`. A worker that was asked to stop
            does not drain instead. False when there is no entry."""

        def forget_worker(self, name: str) -> None:
            """Remove the entry of a worker, and what was asked of it."""

        def keep_credential(self, credential: Credential) -> bool:
            """Store a credential (mam.jobs.credential), and remove those that have expired. False when there is one of
            this kind and name with another digest, or its token is gone: then nothing changes. Wakes nothing. Durable
            when it returns."""

        def credential(self, digest: str) -> Credential | None:
            """The credential with this digest, also an expired one."""

        def credentials(self, kind: str) -> list[Credential]:
            """Those of this kind, by name."""

        def take_credential(self, digest: str) -> Credential | None:
            """Remove it and return it; of two callers only one gets it."""

        def drop_credential(self, kind: str, name: str) -> bool:
            """Remove it, and with a token everything that belongs to it. False when there is none."""

        def keep_secrets(self, job_id: str, secrets: dict[str, str]) -> None:
            """Store secrets, which a record must not hold. Durable when it returns."""

        def secrets(self, job_id: str) -> dict[str, str]: ...

        def problems(self) -> list[Problem]:
            """What mam found in the store and left alone."""

        def events(self, job_id: str) -> list[AuditRecord]:
            """Payloads and markers of one job, in the order of their sequence numbers."""

        def archive(self, job_ids: Sequence[str]) -> list[str]:
            """Move ended jobs to the archive. Returns which of these jobs are in the archive now.

            A job that has not ended, or that is the newest of all, stays. Atomic for each job: every reader finds it
            either in the registry or in the archive.
            """

        def archived(self, job_id: str) -> JobWithEvents | None: ...

        def archived_ids_with_prefix(self, prefix: str, limit: int) -> list[str]:
            """Ids in the archive with this prefix, in order, at most `limit`."""

        def archive_contents(self, *, newest_first: bool = False) -> Iterator[JobWithEvents]:
            """All archived jobs, lowest number first, or highest first."""

        def import_jobs(self, batch: Sequence[JobWithEvents], *, archived: bool = False) -> None:
            """Store jobs of another registry with their numbers, replacing jobs with the same ids.

            Only for a registry that is being imported and has no workers. Durable when it returns.
            """

        def summarise(self, job_ids: Sequence[str], below: int) -> int:
            """Replace the journal entries before number `below` of archived jobs: one for each job, at the number of
            its last one (mam.jobs.summary). Returns how many entries are gone. Atomic; a repeat changes nothing."""

        def unsummarised(self, below: int) -> list[str]:
            """The archived jobs for which `summarise` has something to do."""

        def summarised_upto(self) -> int:
            """Before this number, entries of archived jobs were summarised; 0 if none were."""

        def consumers(self) -> dict[str, str]:
            """The saved position of each named consumer."""

        def end_offset(self) -> str:
            """The offset after the last entry."""

        def entries(self, offset: str | None) -> Iterator[Entry]:
            """The journal from an offset (None: from its beginning) to its current end, in order and complete."""

        def wait(self, offset: str, timeout: float, interest: Interest | None = None) -> bool:
            """Sleep until there may be an entry after the offset. Returns False when the timeout expired. A store for
            many hosts wakes a waiter with an `interest` only for those entries."""

        def position(self, consumer: str) -> str | None:
            """The saved position of a named consumer (mam.stores.consumer); None if it is new. It is part of the store:
            a backup contains it, and another store starts without it."""

        def save_position(self, consumer: str, position: str) -> None:
            """Durable when it returns."""

        def due_in(self) -> float | None:
            """Seconds until a lease, a wait or a pause ends (0 if one has); None if there is none."""

        def close(self) -> None: ...
