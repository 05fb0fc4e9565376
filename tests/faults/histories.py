"""Many processes use a few jobs while they are killed, stopped and given wrong times. Each call and answer is recorded.

Each process writes its call down before it makes it, and the answer afterwards, with the time of a clock that does
not jump. `linearizability.py` checks the result.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mam.errors import AlreadyRegistered, ClaimLost, MamError, StoreUnavailable, UnknownJob
from mam.registry import Registry
from mam.stores.port import ClaimRequest, Query
from mam.util.clock import SystemClock
from tests.faults.callers import CallerPool, CallerProcess, CallerTask, note
from tests.faults.invariants import FoldedJournal
from tests.faults.linearizability import EXISTS, LOST, REFUSED, UNKNOWN, Call, linearizable

if TYPE_CHECKING:
    from mam.jobs.record import Job
    from mam.stores.port import Store
    from mam.util.clock import Clock, Moment

LEASE = 0.06
SLACK = 0.005
"""The store rounds leases to whole milliseconds."""
LABEL = "crowd"
JOBS = tuple(f"job-{number}" for number in range(6))


@dataclass(frozen=True)
class Plan:
    """The seed decides every random choice of a history; the timing of the machine is not repeatable."""

    seed: int
    processes: int
    jobs: int = 6
    asks: int = 10
    faults: int = 4

    @classmethod
    def of(cls, seed: int) -> Plan:
        """Most histories have few processes, because many short histories find more than a long one. Some have many
        processes, and some have only one job, for which all processes compete."""
        chance = random.Random(seed)
        return cls(
            seed=seed, processes=chance.randint(8, 32 if seed % 8 == 0 else 10), jobs=1 if seed % 4 == 1 else 6
        )  # fmt: skip


class Caller:
    """The calls of one process."""

    def __init__(self, store: Store, task: CallerTask, notes: int) -> None:
        self._registry = Registry(store)
        self._jobs = JOBS[: task.jobs]
        self._chance = task.chance
        self._notes = notes
        self._held: dict[str, int] = {}
        self._seen: dict[str, int] = {}

    def ask(self) -> None:
        job_id = self._chance.choice(self._jobs)
        asks: list[tuple[str, Callable[[], Job | None]]] = [
            ("register", lambda: self._registry.register(prompt="p", agent="a", label=LABEL, job_id=job_id).job),
            ("claim", lambda: self._registry.store.claim(_request(job_id))),
            ("get", lambda: self._registry.store.get(job_id)),
            ("next_seq", lambda: self._numbered(job_id)),
        ]
        if self._chance.random() < 0.1:
            asks.append(("cancel", lambda: self._registry.store.change(job_id, _cancelled)))
        verb, do = self._chance.choice(asks)
        if self._seen and self._chance.random() < 0.55:
            job_id = self._chance.choice(sorted(self._held or self._seen))
            attempt = self._held.get(job_id, self._seen[job_id])
            self._ask(*self._of_holder(job_id, attempt), job_id, attempt)
        else:
            self._ask(verb, do, job_id, None)

    def _of_holder(self, job_id: str, attempt: int) -> tuple[str, Callable[[], Job | None]]:
        registry = self._registry
        asks: list[tuple[str, Callable[[], Job | None]]] = [
            ("publish", lambda: registry.publish(job_id, event="progress", attempt=attempt)),
            ("publish", lambda: registry.publish(job_id, event="progress", attempt=attempt)),
            ("heartbeat", lambda: registry.heartbeat(job_id, attempt=attempt, lease_seconds=LEASE)),
            ("release", lambda: registry.release(job_id, attempt=attempt)),
            ("complete", lambda: registry.complete(job_id, attempt=attempt)),
            ("fail", lambda: registry.fail(job_id, attempt=attempt, reason="r")),
        ]
        return self._chance.choice(asks)

    def _numbered(self, job_id: str) -> Job:
        from mam.jobs import acts

        return self._registry.store.change(job_id, acts.reserve_seq)

    def _ask(self, verb: str, do: Callable[[], Job | None], job_id: str, attempt: int | None) -> None:
        self._note(["asked", verb, job_id, attempt, time.monotonic()])
        try:
            job = do()
        except StoreUnavailable:
            return  # it is unknown whether the call took effect
        except MamError as refused:
            answer: Any = _word(refused)
        else:
            answer = REFUSED if job is None else [str(job.status), job.attempt, job.last_seq]
            if job is not None:
                self._seen[job_id] = job.attempt
                if verb == "claim":
                    self._held[job_id] = job.attempt
        self._note(["told", answer, time.monotonic()])

    def _note(self, what: list[Any]) -> None:
        note(self._notes, what)

    def close(self) -> None:
        self._registry.store.close()


def _request(job_id: str) -> ClaimRequest:
    return ClaimRequest(label=LABEL, owner="somebody", lease_seconds=LEASE, job_id=job_id)


def _cancelled(job: Job, moment: Moment) -> Any:
    from mam.jobs import acts

    return acts.cancel(job, moment, attempt=None, reason=None)


def _word(refused: MamError) -> str:
    if isinstance(refused, ClaimLost):
        return LOST
    if isinstance(refused, AlreadyRegistered):
        return EXISTS
    return UNKNOWN if isinstance(refused, UnknownJob) else REFUSED


class DisturbedCallers:
    """The processes of one history, which the test kills, stops and gives wrong times."""

    def __init__(
        self, pool: CallerPool, folder: Path, plan: Plan, in_the_middle: Callable[[], None] = lambda: None
    ) -> None:
        self._pool = pool
        self._in_the_middle = in_the_middle
        self._folder = folder
        self._plan = plan
        self._chance = random.Random(plan.seed)
        self._alive: list[CallerProcess] = []
        self._born = 0

    def live(self) -> None:
        """Runs until the last process has made its last call."""
        self._pool.jump[:4] = bytes(4)
        try:
            for _ in range(self._plan.processes):
                self._start()
            for fault in range(self._plan.faults):
                if fault == self._plan.faults // 2:
                    self._in_the_middle()
                time.sleep(self._chance.uniform(0, LEASE / 3))  # the random moment is the point
                self._chance.choice((self._kill, self._kill, self._stop, self._set_clock))()
        finally:
            failed = [process for process in self._alive if not self._pool.is_done(process)]
        assert not failed, f"{len(failed)} processes failed"

    def calls(self) -> dict[str, list[Call]]:
        """The calls on each job, or on each name of a session."""
        told: dict[str, list[Call]] = {}
        for notes in sorted(self._folder.glob("notes-*")):
            for name, call in _calls(notes):
                told.setdefault(name, []).append(call)
        return told

    def _start(self) -> None:
        self._born += 1
        name, plan = f"{self._plan.seed} {self._born}", self._plan
        task = CallerTask(folder=str(self._folder), name=name, jobs=plan.jobs, asks=plan.asks)
        self._alive.append(self._pool.start(task))

    def _kill(self) -> None:
        victim = self._alive.pop(self._chance.randrange(len(self._alive)))
        os.kill(victim.process, signal.SIGKILL)
        victim.end()
        self._start()

    def _stop(self) -> None:
        """Stops a process for longer than its lease, and continues it."""
        victim = self._chance.choice(self._alive).process
        os.kill(victim, signal.SIGSTOP)
        time.sleep(LEASE * 1.2)  # the test is about time that passes
        os.kill(victim, signal.SIGCONT)

    def _set_clock(self) -> None:
        self._pool.jump[:4] = self._chance.choice((-86400, -3600, 0, 3600, 86400)).to_bytes(4, "little", signed=True)


def _calls(notes: Path) -> list[tuple[str, Call]]:
    """Calls and answers alternate in the file; the last line may be incomplete."""
    lines = [json.loads(line) for line in notes.read_bytes().split(b"\n")[:-1]]
    calls = []
    for place, line in enumerate(lines):
        if line[0] != "asked":
            continue
        _, verb, job_id, attempt, asked = line
        told: list[Any] = (
            lines[place + 1] if place + 1 < len(lines) and lines[place + 1][0] == "told" else ["told", None, inf]
        )
        answer = tuple(told[1]) if isinstance(told[1], list) else told[1]
        call = Call(
            verb=verb, asked=asked, answered=told[2], attempt=attempt, lease=LEASE - SLACK, answer=answer
        )  # fmt: skip
        calls.append((job_id, call))
    return calls


OpenStore = Callable[[Path, "Clock"], "Store"]


class Histories:
    """Histories of jobs in one kind of store.

    With `skips_locked` a claim may come back empty because another act held the job for a moment, as on PostgreSQL.
    `in_the_middle` is called after half of the faults of each history.
    """

    def __init__(
        self, open_store: OpenStore, *, skips_locked: bool = False, in_the_middle: Callable[[], None] = lambda: None
    ) -> None:
        self._in_the_middle = in_the_middle
        self._open_store = open_store
        self._skips_locked = skips_locked
        self._pool = CallerPool(lambda task, clock, notes: Caller(open_store(Path(task.folder), clock), task, notes))

    def close(self) -> None:
        self._pool.close()

    def judged(self, folder: Path, plan: Plan) -> int:
        """Runs a history and checks it. Returns the number of its calls."""
        callers = DisturbedCallers(self._pool, folder, plan, self._in_the_middle)
        callers.live()
        store = self._open_store(folder, SystemClock())
        try:
            calls = {job_id: list[Call]() for job_id in JOBS[: plan.jobs]} | callers.calls()
            for job_id, asked in calls.items():
                asked = [*asked, _last_look(store, job_id)]
                if self._skips_locked:
                    asked = [call for call in asked if (call.verb, call.answer) != ("claim", REFUSED)]
                assert linearizable(asked), _folded(plan, job_id, asked)
            folded = FoldedJournal(gapless=not self._skips_locked)
            folded.follow(store)
            folded.check_everything(store)
            _check_that_it_goes_on(store)
            return sum(map(len, calls.values()))
        finally:
            store.close()


def _folded(plan: Plan, job_id: str, calls: list[Call]) -> str:
    """In the order of the calls, so that a person finds the impossible one."""
    lines = [str(call) for call in sorted(calls, key=lambda call: call.asked)]
    return "\n".join((f"no order explains {job_id}, seed {plan.seed}, {plan.processes} processes:", *lines))


def _last_look(store: Store, job_id: str) -> Call:
    asked = time.monotonic()
    try:
        job = store.get(job_id)
        answer: Any = (str(job.status), job.attempt, job.last_seq)
    except UnknownJob:
        answer = UNKNOWN
    return Call(verb="get", asked=asked, answered=time.monotonic(), answer=answer)


def _check_that_it_goes_on(store: Store) -> None:
    """When the faults have stopped and the last lease is over, every job has ended or can be claimed and ended."""
    registry = Registry(store)
    while (job := registry.pick(LABEL, owner="last", wait=LEASE)) is not None:
        registry.complete(job.job_id, attempt=job.attempt)
    assert all(job.status.ended for job in store.select(Query(label=LABEL)))
