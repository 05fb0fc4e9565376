"""The backend of an agent inside a job: the door of its worker, which knows this job and its children."""

from __future__ import annotations

import os
import time
from threading import Event, Lock, Thread

from mam.errors import Refused
from mam.mcp.follower import WakePipe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from mam.door_client import DoorClient
    from mam.jobs.acts import Fence
    from mam.jobs.question import Draft, Question
    from mam.jobs.record import Job
    from mam.mcp.backend import Changes
    from mam.mcp.caller import Caller
    from mam.mcp.messages import Json
    from mam.questions import Asked
    from mam.registry.listing import JobFilter
    from mam.stores.port import Registration

_PASSED = ("label", "model", "after", "exclusive", "artifacts", "key")
LOOK_SECONDS, PARK_SECONDS = 1.0, 5.0


class DoorBackend:
    def __init__(self, caller: Caller, address: str) -> None:
        self._caller = caller
        self._address = address
        self._door: DoorClient | None = None

    @property
    def door(self) -> DoorClient:
        if self._door is None:
            from mam.door_client import DoorClient

            self._door = DoorClient(self._address)
        return self._door

    # -- reading -----------------------------------------------------------------------------------------------------

    def resolve(self, name: str) -> str:
        return self.door.resolve(name)

    def get(self, name: str) -> Job:
        return self.door.get(name)

    def get_exact(self, job_id: str) -> Job:
        return self.door.get(job_id)

    def why(self, job: Job) -> list[str]:
        found: list[str] = self.door.call("overview", job=job.job_id)["overview"]["why"]
        return found

    def overview(self, name: str) -> tuple[Job, Json]:
        answer = self.door.call("overview", job=name)
        return self._parsed(answer["job"]), answer["overview"]

    def select(self, wanted: JobFilter) -> Iterator[Job]:
        from mam.stores.common import matches

        jobs = (self._parsed(fields) for fields in self.door.call("children")["jobs"])
        return (job for job in jobs if matches(wanted.query, job) and wanted.matches(job))

    def needs_look(self, _job: Job) -> bool:
        return False

    def log(self, job: Job) -> Iterable[bytes]:
        raise Refused(why=f"Inside a job, the output of job {job.job_id} is not available; read its result.")

    def diff(self, job: Job) -> Iterable[bytes]:
        raise Refused(why=f"Inside a job, the diff of job {job.job_id} is not available; look at its directory.")

    def sweep(self) -> None:
        """The worker does it."""

    def now_ms(self) -> int:
        return int(time.time() * 1000)

    def follower(self) -> Changes:
        from mam.door_client import DoorClient

        return _DoorChanges(DoorClient(self._address), self._caller.own_job or "")

    # -- delegating --------------------------------------------------------------------------------------------------

    def register(self, prompt: str, agent: str, arguments: Json) -> Registration:
        from mam.mcp.bounds import check_agent
        from mam.stores.port import Registration

        check_agent(self._caller, agent)
        choices = {name: arguments[name] for name in _PASSED if name in arguments}
        if "repo" in arguments:
            raise Refused(why="A job cannot name a repository for its child; give a workdir inside its own directory.")
        if "workdir" in arguments:
            choices["workdir"] = os.path.realpath(os.path.join(self._caller.directory, arguments["workdir"]))
        made = self.door.register(prompt=prompt, agent=agent, **choices)
        return Registration(job=self.door.get(made.job.job_id), created=made.created)

    def continue_job(self, _name: str, _prompt: str, _arguments: Json) -> Registration:
        raise Refused(why="A job cannot continue another conversation: only the user does.")

    def cancel(self, name: str, reason: str) -> Job:
        return self._parsed(self.door.call("cancel", job=name, reason=reason)["job"])

    def claim(self, _label: str, _lease_seconds: float | None) -> Job | None:
        raise Refused(why="Inside a job, no other job can be claimed.")

    def report(self, event: str, job_id: str, fence: Fence, **said: Any) -> Job:  # noqa: ARG002
        raise Refused(why="Inside a job, report with `mam publish`, `mam complete` or `mam fail`.")

    # -- questions ---------------------------------------------------------------------------------------------------

    def ask(self, draft: Draft) -> Asked:
        from mam.questions import Asked
        from mam.work.asking.at_door import DoorAsker

        question = DoorAsker(self.door).open(draft)
        return Asked(job=self.door.get(self._caller.own_job or ""), question=question)

    def question(self, name: str) -> Asked:
        from mam.jobs.question import find_question
        from mam.questions import Asked

        prefix, _, number = name.rpartition(".")
        job = self.door.get(prefix)
        is_number = number.isascii() and number.isdigit() and len(number) < 10
        question = find_question(job, int(number)) if is_number else None
        if question is not None and job.job_id == self._caller.own_job:
            from mam.work.asking.at_door import DoorAsker

            # The worker has to learn that the agent got the answer.
            question = DoorAsker(self.door).wait(question.number, 0) or question
        if question is None:
            raise Refused(why=f"Job {job.job_id} has no question {number[:20]!r}.")
        return Asked(job=job, question=question)

    def may_answer(self, _job: Job, _question: Question) -> bool:
        return False

    def answer(self, _asked: Asked, _text: str, _client: str) -> None:
        raise Refused(why="Inside a job, an agent answers no question: only a person does.")

    def may_answer_job(self, _job: Job) -> bool:
        return False

    def answer_job(self, _job: Job, _text: str, _client: str) -> None:
        raise Refused(why="Inside a job, an agent answers no question: only a person does.")

    def _parsed(self, fields: Json) -> Job:
        from mam.jobs.record import parse_job

        return parse_job(fields, self._address)


class _DoorChanges:
    """Asks the worker which of the watched jobs have changed. The own job is looked at once a second."""

    def __init__(self, door: DoorClient, own: str) -> None:
        self._door = door
        self._own = own
        self._pipe = WakePipe()
        self.wakes = self._pipe.wakes
        self._lock = Lock()
        self._jobs: frozenset[str] = frozenset()
        self._marks: dict[str, str] = {}
        self._stopped = Event()
        self._thread = Thread(target=self._follow, name="mam-mcp-door", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def watch(self, jobs: frozenset[str]) -> None:
        with self._lock:
            self._jobs = jobs

    def take(self) -> set[str]:
        return self._pipe.take()

    def stop(self) -> None:
        self._stopped.set()

    def _follow(self) -> None:
        from mam.errors import MamError

        while not self._stopped.is_set():
            with self._lock:
                jobs = self._jobs
            try:
                changed = self._changed(jobs)
            except (MamError, OSError):  # the worker is gone; requests report it
                changed = set()
                self._stopped.wait(LOOK_SECONDS)
            if changed:
                self._pipe.wake(changed)

    def _changed(self, jobs: frozenset[str]) -> set[str]:
        children = jobs - {self._own}
        changed = jobs & {self._own}
        if not children:
            self._stopped.wait(LOOK_SECONDS)
            return set(changed)
        seen = {job_id: self._marks.get(job_id, "") for job_id in sorted(children)}
        answer = self._door.call("wait", seen=seen, longest=LOOK_SECONDS if changed else PARK_SECONDS)
        for told in answer["jobs"]:
            job_id: str = told["job"]["job_id"]
            self._marks[job_id] = told["mark"]
            changed |= {job_id}
        return set(changed | {lost["job_id"] for lost in answer["lost"]})
