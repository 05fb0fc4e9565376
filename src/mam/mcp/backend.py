"""The port between the tools and the jobs: what one caller can reach, with the rights that it has.

- `StoreBackend` (store_backend.py): the user of this host, on the registry;
- `DoorBackend` (door_backend.py): an agent inside a job, at the door of its worker: this job and its children;
- `ViewerBackend` (viewer_backend.py): the holder of a token of `mam serve`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, Protocol

    from mam.jobs.acts import Fence
    from mam.jobs.question import Draft, Question
    from mam.jobs.record import Job
    from mam.mcp.messages import Json
    from mam.questions import Asked
    from mam.registry.listing import JobFilter
    from mam.stores.port import Registration

    class Backend(Protocol):
        """Every method raises MamError for what the caller may not do, and says what to do instead."""

        def resolve(self, name: str) -> str: ...

        def get(self, name: str) -> Job: ...

        def get_exact(self, job_id: str) -> Job:
            """Of a whole id. Applies deadlines and leases that have passed first."""

        def why(self, job: Job) -> list[str]:
            """The sentences of `mam explain`."""

        def overview(self, name: str) -> tuple[Job, Json]:
            """The job, and what `mam show --json` prints about it."""

        def select(self, wanted: JobFilter) -> Iterator[Job]:
            """Newest first."""

        def needs_look(self, job: Job) -> bool: ...

        def register(self, prompt: str, agent: str, arguments: Json) -> Registration:
            """Registers a job with the choices of `submit`."""

        def continue_job(self, name: str, prompt: str, arguments: Json) -> Registration: ...

        def cancel(self, name: str, reason: str) -> Job: ...

        def claim(self, label: str, lease_seconds: float | None) -> Job | None: ...

        def report(self, event: str, job_id: str, fence: Fence, **said: Any) -> Job:
            """heartbeat, progress, complete, fail or release, by the holder of the claim."""

        def ask(self, draft: Draft) -> Asked:
            """Puts a question of the caller's own job to a person."""

        def question(self, name: str) -> Asked: ...

        def may_answer(self, job: Job, question: Question) -> bool:
            """Whether the person behind the client may answer it with a form."""

        def answer(self, asked: Asked, text: str, client: str) -> None:
            """`client` is the name of the program with which the person answered."""

        def may_answer_job(self, job: Job) -> bool:
            """Whether the person behind the client may end this job for a person with a form."""

        def answer_job(self, job: Job, text: str, client: str) -> None: ...

        def log(self, job: Job) -> Iterable[bytes]:
            """What the job's agent printed."""

        def diff(self, job: Job) -> Iterable[bytes]: ...

        def sweep(self) -> None:
            """Applies deadlines and leases that have passed, if there are any."""

        def now_ms(self) -> int: ...

        def follower(self) -> Changes:
            """Follows the changes of jobs."""

    class Changes(Protocol):
        """Tells which jobs have changed. `wakes` is a descriptor that is readable then."""

        wakes: int

        def start(self) -> None: ...

        def watch(self, jobs: frozenset[str]) -> None:
            """Which jobs matter; `take` may also return others."""

        def take(self) -> set[str]: ...

        def stop(self) -> None: ...
