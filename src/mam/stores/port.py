"""What every store promises. The words are those of the domain; how bytes are kept is each store's own business.

A store never decides what may happen to a job: it finds the job, calls a pure act inside its lock or transaction, and
makes the change that comes back one atomic entry of its journal. `mam.testing.conformance` is the judge.
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
    from mam.jobs.ending import End
    from mam.jobs.generation import Generations
    from mam.jobs.pause import Pause
    from mam.util.clock import Clock, Moment

    Act = Callable[[Job, Moment], Change]


class ClaimRequest(Frozen):
    """Who wants work: a label, a name to be known by, and for how long the claim shall be believed."""

    label: str
    owner: str
    lease_seconds: float | None = None
    """None takes the job's own time limit."""
    claim_id: str | None = None
    """The name of the claim; the store makes one up if there is none."""
    supervised: bool = False
    """Whether a worker asks, who will look at the outcome itself."""
    job_id: str | None = None
    """Only this one, if it may be claimed now; None takes the first of the label."""
    agent_id: str | None = None
    generation_id: str | None = None
    """The session that asks, both or none: its claim is taken back when a newer generation announces itself."""


class Registration(Frozen):
    job: Job
    created: bool
    """False when the key (or the job to be retried) had been registered before; `job` is that one."""


class Query(Frozen):
    """Which jobs; None means any."""

    statuses: frozenset[Status] | None = None
    label: str | None = None
    since: str | None = None
    """Not created before this second."""


class QueuedJob(Frozen):
    """What decides when a pending job is claimed, without the rest of its record."""

    job_id: str
    label: str
    agent: str
    priority: int
    number: int


class Entry(Frozen):
    """One change of one job, as the journal keeps it."""

    offset: str
    """Where the journal goes on after this entry: its number in decimal."""
    number: int
    """Numbers rise in the order in which entries are committed; some may be missing."""
    job_id: str
    fields: dict[str, Any] | None
    """The fields that changed, with their new values; None when the job is gone."""
    lines: tuple[AuditRecord, ...]


class JobWithEvents(Frozen):
    """A whole job: its record and everything that was told about it."""

    job: Job
    events: list[AuditRecord]
    """As `Store.events` gives them."""


class Problem(Frozen):
    """Something in the store that mam left alone and a person should see."""

    file: str
    problem: str


if TYPE_CHECKING:

    class Store(Protocol):
        """One registry of jobs."""

        @property
        def address(self) -> str:
            """What the user would give to `--store`; never with a secret in it."""

        @property
        def journal_id(self) -> str:
            """The epoch of this journal; another one after the store was made anew."""

        @property
        def home(self) -> str | None:
            """A private directory beside the data, for what is not part of the registry; None if there is none."""

        @property
        def clock(self) -> Clock: ...

        def register(self, draft: Job) -> Registration:
            """Take a new job. Its number is higher than any before.

            The same `key`, or a second retry of the same job, gives the first job back and writes nothing.
            Raises AlreadyRegistered when another job has the id. Durable when it returns.
            """

        def register_all(self, drafts: Sequence[Job]) -> list[Job]:
            """Take many new jobs in one act, in this order: all of them or none.

            For jobs that stand alone: without a key, and coming after or in the place of no other. Raises
            AlreadyRegistered when another job has one of the ids. Durable when it returns.
            """

        def change(self, job_id: str, act: Act) -> Job:
            """Apply an act to one job, atomically, and return the job after it.

            The act sees the job as it is under the lock, and the store's own time. If it raises, nothing changes; if
            it returns no lines, nothing is written. Raises UnknownJob. Durable when it returns.
            """

        def end_job(self, job_id: str, ended: End) -> Job:
            """What `change` with `mam.jobs.ending.end` does; a store may do it in one statement."""

        def claim(self, request: ClaimRequest) -> Job | None:
            """Hand out the first job of exactly this label: highest priority, then lowest number.

            Settles due jobs first, as `sweep` does. Passes over what a pause or a key in use holds back. Two claimers
            never get the same attempt of a job. The cost does not grow with the number of jobs. None when there is
            nothing to claim. A request that names a session is refused (GenerationLost) once that was replaced.
            """

        def announce(self, agent_id: str, generation_id: str) -> list[Job]:
            """This generation of the session is the one that counts here from now on (mam.jobs.generation).

            The jobs that an older one holds return to pending, and are the answer; the older one can claim no more.
            Raises GenerationLost when this one has been replaced itself. Saying it again changes nothing. A claim that
            names a session says it too, before anything else. Durable when it returns.
            """

        def generations(self) -> dict[str, Generations]:
            """What is known of each session, by its agent's id."""

        def sweep(self) -> list[Job]:
            """Settle what time has decided (mam.jobs.sweep) and what the end of a job means for those that come after
            it (mam.jobs.dependency), longest due first, at most SWEEP_LIMIT jobs of each kind."""

        def get(self, job_id: str) -> Job:
            """The job of exactly this id. Raises UnknownJob, or BadRecord if it cannot be read."""

        def ids_with_prefix(self, prefix: str, limit: int) -> list[str]:
            """Ids that begin so, in order, `limit` at most."""

        def children(self, job_id: str) -> list[str]:
            """Ids of the jobs that were registered from inside this one, oldest first. The cost does not grow with the
            number of other jobs."""

        def select(self, query: Query) -> Iterator[Job]:
            """The jobs that match, newest (highest number) first."""

        def queue(self, label: str | None = None, since: str | None = None) -> list[QueuedJob]:
            """The pending jobs (of this label, not created before this second), in the order of their numbers. There
            may be very many, so this reads no whole records."""

        def counts(self) -> dict[str, int]:
            """How many jobs there are of each status that has any."""

        def ended_before(self, before: str) -> dict[str, int]:
            """How many jobs ended before this second, by their status; without reading each of them."""

        def ahead_of(self, job: Job) -> int:
            """How many pending jobs of the same label would be claimed before this one."""

        def newest(self, job_id: str) -> Job | None:
            """The last retry of this job, or the job itself; None when there is none of them."""

        def holder(self, key: str) -> str | None:
            """The job that runs under this exclusive key."""

        def pauses(self) -> list[Pause]:
            """Every pause that is kept, also those whose time is over."""

        def pause(self, pause: Pause) -> None:
            """Keep it, in the place of one for the same agent and label. Wakes those who wait, as `resume` does."""

        def resume(self, agent: str | None, label: str | None) -> bool:
            """Lift the pause of exactly this agent and label; False when there is none."""

        def keep_secrets(self, job_id: str, secrets: dict[str, str]) -> None:
            """What may not stand in a record, durable when it returns."""

        def secrets(self, job_id: str) -> dict[str, str]: ...

        def problems(self) -> list[Problem]:
            """What the last look at the store found and left alone."""

        def events(self, job_id: str) -> list[AuditRecord]:
            """Payloads and markers of one job, in the order of their sequence numbers."""

        def archive(self, job_ids: Sequence[str]) -> list[str]:
            """Move ended jobs out of the way of the others; the ids of those that are in the archive now.

            One that has not ended, that somebody waits for, or that is the newest of all stays, and so does one that
            is not there. Atomic for each job: it is in the registry or in the archive, whenever one looks.
            """

        def archived(self, job_id: str) -> JobWithEvents | None: ...

        def archived_ids_with_prefix(self, prefix: str, limit: int) -> list[str]:
            """Ids in the archive that begin so, in order, `limit` at most."""

        def archive_contents(self, *, newest_first: bool = False) -> Iterator[JobWithEvents]:
            """Everything in the archive, lowest number first, or highest."""

        def import_jobs(self, batch: Sequence[JobWithEvents], *, archived: bool = False) -> None:
            """Put jobs of another registry here as they are, numbers and all, in the place of those with the same id.

            Only for a registry that is being filled and that nobody works on. Durable when it returns.
            """

        def end_offset(self) -> str:
            """The offset behind the last entry."""

        def entries(self, offset: str | None) -> Iterator[Entry]:
            """The journal from a offset (None: from its beginning) to where it ends now, in order, complete."""

        def wait(self, offset: str, timeout: float) -> bool:
            """Sleep until there may be an entry behind the offset; False when the time ran out."""

        def position(self, consumer: str) -> str | None:
            """How far a named consumer has read the journal, as it saved it (mam.stores.consumer); None for a new one.
            It is part of the store: a backup holds it, and another store starts without it."""

        def save_position(self, consumer: str, position: str) -> None:
            """Durable when it returns."""

        def due_in(self) -> float | None:
            """Seconds until time decides something about a job (0 if it has); None if nothing is to come."""

        def close(self) -> None: ...
