"""The statements `claim` and `end` beside the pure rules: equal histories give equal records, events and journals."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from mam.errors import MamError
from mam.jobs import acts, question_acts, worker_acts
from mam.jobs.draft import draft_job
from mam.jobs.ending import End
from mam.jobs.pause import Pause
from mam.jobs.question import Draft
from mam.jobs.question_acts import Answer
from mam.jobs.record import Job
from mam.jobs.status import COMPLETED, ERROR, RUNNING
from mam.stores.memory import MemoryStore
from mam.stores.port import ClaimRequest, Query
from mam.stores.postgres.client import Client
from mam.stores.postgres.store import PostgresStore, create_postgres_store
from mam.testing.clock import FakeClock
from mam.util.clock import Moment

if TYPE_CHECKING:
    from mam.stores.port import Store

HISTORIES, STEPS, JOBS = 60, 30, 8
LABELS = ("one", "two")
TEXTS = (
    None,
    "",
    "done",
    "이상한\n일",
    "see /home/me/secret/file.txt",
    "key sk-abcdefghijklmnop1234",
    '"quoted" \\ back',
)
LEASES = (None, None, 60, 0.0005, 60.0015, 60.0006, 1.5, 0.1, 4000.25, 86400)
PUSH = Draft(kind="permission", text="push?", tool="Bash", input={"command": "git push"})
RUNS: tuple[Any, ...] = (None, {}, {"exit": 0, "text": "\0 é", "n": 1.0, "deep": [1e300, {"a": None}]})
CHECKS: tuple[Any, ...] = (None, {}, {"artifacts": ["a"]}, {"script": {"ok": True}}, {"script": None})


class WallClock(FakeClock):
    """As a server's: there is no clock of its boot."""

    def now(self) -> Moment:
        return Moment(wall_ms=super().now().wall_ms)


class CountingClient(Client):
    """Counts which statements wrote something."""

    wrote: Counter[str]

    def write(self, query: str, values: dict[str, Any]) -> list[Any]:
        rows = super().write(query, values)
        self.wrote[query if rows else f"{query} in vain"] += 1
        return rows


class CountingStore(PostgresStore):
    client = CountingClient


class History:
    """One random history, done to both stores step by step."""

    def __init__(self, seed: int, stores: tuple[Store, Store], clock: FakeClock) -> None:
        self.chance = random.Random(seed)
        self.stores = stores
        self.clock = clock
        self.ids: list[str] = []
        self.turn = 0

    def run(self) -> None:
        steps = (
            self.register,
            self.register,
            self.claim,
            self.claim,
            self.claim,
            self.end,
            self.end,
            self.end,
            self.touch,
            self.time,
        )
        self.register()
        for self.turn in range(STEPS):
            self.chance.choice(steps)()
        self.compare()

    def register(self) -> None:
        if len(self.ids) == JOBS:
            return
        one_of = self.chance.choice
        job_id = f"job-{len(self.ids)}"
        draft = draft_job(
            job_id=job_id, prompt="work", agent=one_of(("codex", "shell")), label=one_of(LABELS),
            priority=one_of((0, 0, 5)), timeout_sec=one_of((0, 90, 3600)),
            artifacts=one_of(((), (), ("out/a",))), exclusive=one_of((None, None, None, "k")),
            after=self.ids[:1] if self.chance.random() < 0.15 else (),  # one sweep settles one chain
            on_dependency_failure=one_of(("hold", "cancel", "run")), permissions=one_of(("edit", "edit", "full")),
        ).replace(conversation=one_of((None, None, {"host": "alpha"})))  # fmt: skip
        self.ids.append(job_id)
        self.both(lambda store: store.register(draft).job)

    def claim(self) -> None:
        one_of = self.chance.choice
        session = one_of(((None, None), (None, None), (None, None), ("gpu", "first"), ("gpu", "second")))
        request = ClaimRequest(
            label=one_of(LABELS), owner=one_of(("worker", "", "w/é")), lease_seconds=one_of(LEASES),
            claim_id=f"claim-{self.turn}", supervised=one_of((False, True)),
            agent_id=session[0], generation_id=session[1], host=one_of(("", "alpha", "beta")),
        )  # fmt: skip
        self.both(lambda store: store.claim(request))

    def end(self) -> None:
        one_of = self.chance.choice
        job = self._some_job()
        by_worker = job.supervised if self.chance.random() < 0.9 else not job.supervised
        ended = End(
            status=one_of((COMPLETED, ERROR)), attempt=job.attempt + one_of((0,) * 9 + (1,)),
            claim_id=one_of((None, None, None, job.claim_id, job.claim_id, job.claim_id, "another")),
            result=one_of(TEXTS), reason=one_of(TEXTS),
            checked=one_of((None, True, False)), artifacts_unchecked=one_of((False, False, True)), supervised=by_worker,
            run=one_of(RUNS), checks=one_of(CHECKS),
        )  # fmt: skip
        self.both(lambda store: store.end_job(job.job_id, ended))

    def touch(self) -> None:
        job = self._some_job()
        fence: dict[str, Any] = {"attempt": job.attempt, "claim_id": job.claim_id}
        act = self.chance.choice(
            (
                partial(acts.heartbeat, **fence, lease_seconds=None),
                partial(acts.publish, **fence, event="progress", detail="half", data={"n": 1}),
                partial(acts.publish, **fence, event="completed", detail="said so", data={}),
                partial(acts.release, **fence),
                partial(question_acts.ask, **fence, draft=PUSH),
                partial(question_acts.ask, **fence, draft=PUSH.replace(deadline_seconds=30.0)),
                partial(question_acts.answer, given=self._answer(job)),
                partial(acts.fail_retryable, **fence, reason="no luck", delay_seconds=5),
                partial(worker_acts.started, **fence, run={"pid": 1}),
                partial(acts.cancel, attempt=None, reason=None),
            )
        )
        self.both(lambda store: store.change(job.job_id, act))

    def _answer(self, job: Job) -> Answer:
        latest = job.questions[-1] if job.questions else {}
        return Answer(
            number=latest.get("number", 1), attempt=latest.get("attempt", 1), digest=latest.get("digest", "0" * 64),
            answer=self.chance.choice(("allow", "deny", "perhaps")), by="me@pc",
        )  # fmt: skip

    def _some_job(self) -> Job:
        """Mostly one that runs: the others are refused alike."""
        jobs = [self.stores[1].get(job_id) for job_id in self.ids]
        running = [job for job in jobs if job.status is RUNNING]
        return self.chance.choice(running if running and self.chance.random() < 0.85 else jobs)

    def time(self) -> None:
        match self.chance.randrange(4):
            case 0:
                self.clock.advance(self.chance.choice((0.001, 61, 100_000)))
            case 1:
                self.clock.set_wall(self.chance.choice((-5000, -0.5)))
            case 2:
                self.both(lambda store: [job.job_id for job in store.sweep()])
            case _:
                pause = Pause(label=self.chance.choice(LABELS), made_at=self.clock.now().second)
                if self.chance.random() < 0.3:
                    self.both(lambda store: store.pause(pause))
                else:
                    self.both(lambda store: store.resume(None, pause.label))

    def both(self, do: Callable[[Store], Any]) -> None:
        ours, model = (self._outcome(do, store) for store in self.stores)
        assert ours == model

    def _outcome(self, do: Callable[[Store], Any], store: Store) -> Any:
        try:
            done = do(store)
        except MamError as error:
            return type(error), str(error).replace(store.address, "")
        except acts.ArtifactCheckNeeded as look:
            return "look first", look.job
        return done.to_json() if isinstance(done, Job) else done

    def compare(self) -> None:
        ours, model = self.stores
        assert list(ours.select(Query())) == list(model.select(Query()))
        for job_id in self.ids:
            assert ours.events(job_id) == model.events(job_id)
        told = [[(entry.job_id, entry.fields, entry.lines) for entry in store.entries(None)] for store in self.stores]
        assert told[0] == told[1]


@pytest.mark.parametrize("part", range(4))
def test_the_statements_equal_the_pure_functions(database: str, part: int) -> None:
    create_postgres_store(database)
    CountingClient.wrote = Counter()
    with psycopg.connect(database, autocommit=True) as admin:
        for seed in range(part * HISTORIES, (part + 1) * HISTORIES):
            admin.execute(
                "TRUNCATE mam.job, mam.journal, mam.dependency, mam.unsettled, mam.pause, mam.session_generation"
            )
            admin.execute("ALTER SEQUENCE mam.job_number RESTART")
            clock = WallClock()
            store = CountingStore(database, clock)
            try:
                History(seed, (store, MemoryStore(clock)), clock).run()
            except AssertionError as error:
                raise AssertionError(f"history {seed}: {error}") from error
            finally:
                store.close()
    wrote = CountingClient.wrote
    assert min(wrote["claim"], wrote["end"]) > HISTORIES, f"the statements did too little of it: {wrote}"
