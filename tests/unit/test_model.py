"""Compares stores with a model that is written from the contract: after any history they agree."""

from __future__ import annotations

import shutil
import tempfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mam.errors import ClaimLost, MamError
from mam.jobs.status import Status
from mam.registry import Registry
from mam.stores.files.store import FilesStore, create_files_store
from mam.stores.memory import MemoryStore
from mam.stores.sqlite.store import SqliteStore, create_sqlite_store
from mam.testing.clock import FakeClock
from mam.testing.conformance.base import check_journal, terminal_events
from mam.util.clock import parse_time
from tests.unit.model import Clocks, Lost, ModelJob, No

if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.jobs.acts import Fence
    from mam.jobs.record import Job
    from mam.stores.port import Store

MOST_JOBS = 12
"""Fewer than one sweep settles, so that the model needs no bound; the conformance suite tests the bound."""

LABELS = st.sampled_from(["one", "two"])
WHICH = st.integers(0, MOST_JOBS - 1)
SECONDS = st.sampled_from([1.0, 30.0, 61.0, 4000.0])
CLAIMS = st.sampled_from(["none", "attempt", "attempt and id", "attempt and id", "older", "newer", "another id"])
NO_HOLDER = -1
"""To the model, the attempt of a writer whose claim id is another one: it holds nothing and has ended nothing."""


class StoreBesideModel(RuleBasedStateMachine):
    def open_store(self) -> Store:
        raise NotImplementedError

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.clocks = Clocks(wall=self.clock.now().wall_ms / 1000)
        self.store = self.open_store()
        self.registry = Registry(self.store)
        self.jobs: dict[str, ModelJob] = {}
        self.claims: dict[tuple[str, int], str | None] = {}
        """The claim id of each attempt, as it was first seen."""

    # -- acts --------------------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.jobs) < MOST_JOBS)
    @rule(label=LABELS, priority=st.integers(-1, 1), delay=st.sampled_from([None, None, 0.0, 50.0]))
    def register(self, label: str, priority: int, delay: float | None) -> None:
        due = None if delay is None else self.clocks.wall + delay
        job = self.registry.register(
            prompt="p", agent="codex", label=label, priority=priority,
            due_ms=None if due is None else round(due * 1000),
        ).job  # fmt: skip
        number = len(self.jobs) + 1
        waits = delay is not None and delay > 0
        status = "waiting" if waits else "pending"
        self.jobs[job.job_id] = ModelJob(number, label, priority, status=status, due=due if waits else None)

    @rule(label=LABELS, seconds=st.none() | SECONDS)
    def claim(self, label: str, seconds: float | None) -> None:
        self._settle()
        waiting = [job for job in self.jobs.items() if (job[1].status, job[1].label) == ("pending", label)]
        expected = min(waiting, key=lambda job: (-job[1].priority, job[1].number), default=None)

        job = self.registry.pick(label, owner="worker", lease_seconds=seconds)

        assert (job and job.job_id) == (expected and expected[0])
        if expected is not None:
            expected[1].claim(self.clocks, 3600.0 if seconds is None else seconds)

    @rule()
    def sweep(self) -> None:
        self._settle()
        self.registry.sweep()

    @rule(which=WHICH, whose=CLAIMS, verb=st.sampled_from(["completed", "error", "cancelled"]))
    def end(self, which: int, whose: str, verb: str) -> None:
        enders: dict[str, Callable[[str, Fence], Job]] = {
            "completed": lambda job, fence: self.registry.complete(job, **fence),
            "error": lambda job, fence: self.registry.fail(job, **fence, reason="broken"),
            "cancelled": lambda job, fence: self.registry.cancel(job, **fence),
        }
        self._both(which, whose, enders[verb], lambda model, attempt: model.end(verb, attempt, self.clocks))

    @rule(which=WHICH, whose=CLAIMS)
    def fail_retryable(self, which: int, whose: str) -> None:
        job = self._both(
            which, whose,
            lambda job, fence: self.registry.fail(job, **fence, reason="no luck", retryable=True),
            lambda model, attempt: model.fail_retryable(attempt, self.clocks),
        )  # fmt: skip
        if job is not None and job.status == "waiting":
            # How long a back-off takes is not promised, only that it takes a while.
            assert job.due_at is not None
            self.jobs[job.job_id].due = due = parse_time(job.due_at) / 1000
            assert due > self.clocks.wall

    @rule(which=WHICH, whose=CLAIMS)
    def release(self, which: int, whose: str) -> None:
        self._both(
            which, whose,
            lambda job, fence: self.registry.release(job, **fence),
            lambda model, attempt: model.release(attempt),
        )  # fmt: skip

    @rule(which=WHICH, whose=CLAIMS, seconds=st.none() | SECONDS)
    def heartbeat(self, which: int, whose: str, seconds: float | None) -> None:
        self._both(
            which, whose,
            lambda job, fence: self.registry.heartbeat(job, **fence, lease_seconds=seconds),
            lambda model, attempt: model.heartbeat(attempt, self.clocks, seconds),
        )  # fmt: skip

    @rule(which=WHICH, whose=CLAIMS, event=st.sampled_from(["started", "progress", "completed", "error"]))
    def publish(self, which: int, whose: str, event: str) -> None:
        self._both(
            which, whose,
            lambda job, fence: self.registry.publish(job, event=event, **fence),
            lambda model, attempt: model.publish(event, attempt, self.clocks),
        )  # fmt: skip

    @rule(which=WHICH, whose=CLAIMS, to=st.sampled_from(list(Status)))
    def set_by_hand(self, which: int, whose: str, to: Status) -> None:
        self._both(
            which, "none" if to is Status.WAITING else whose,
            lambda job, fence: self.registry.set_status(job, to, **fence),
            lambda model, attempt: model.set_by_hand(to, attempt, self.clocks),
        )  # fmt: skip

    @precondition(lambda self: self.jobs)
    @rule(which=WHICH)
    def next_seq(self, which: int) -> None:
        job_id, model = self._job(which)
        model.seq += 1
        assert self.registry.next_seq(job_id) == model.seq

    # -- time --------------------------------------------------------------------------------------------------

    @rule(seconds=SECONDS)
    def time_passes(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.clocks.wall += seconds
        self.clocks.boot += seconds

    @rule(seconds=st.sampled_from([-5000.0, -1.0, 1.0, 5000.0]))
    def the_wall_clock_is_set(self, seconds: float) -> None:
        self.clock.set_wall(seconds)
        self.clocks.wall += seconds

    @rule(seconds=SECONDS)
    def the_machine_restarts(self, seconds: float) -> None:
        self.clock.restart(seconds)
        self.clocks.wall += seconds
        self.clocks.boot = 0.0
        self.clocks.boots += 1
        self.reopen()

    def reopen(self) -> None:
        """What a restart does to a store that is more than memory."""

    # -- what must hold ----------------------------------------------------------------------------------------

    @invariant()
    def both_agree(self) -> None:
        for job_id, model in self.jobs.items():
            job = self.store.get(job_id)
            endings = len(terminal_events(self.store, job_id))
            seen = (str(job.status), job.attempt, job.losses, job.retries, job.last_seq, endings)
            assert seen == model.seen
            assert (job.lease is not None) == (job.status == "running")
            assert job.created_at <= job.updated_at
            if job.attempt:
                assert self.claims.setdefault((job_id, job.attempt), job.claim_id) == job.claim_id is not None
        assert len({*self.claims.values()}) == len(self.claims)
        left = [left for model in self.jobs.values() if (left := model.left(self.clocks)) is not None]
        assert self.store.due_in() == (max(0.0, round(min(left), 3)) if left else None)

    def teardown(self) -> None:
        check_journal(self.store)
        self.store.close()

    # -- shared ------------------------------------------------------------------------------------------------

    def _both(
        self,
        which: int,
        whose: str,
        act: Callable[[str, Fence], Job],
        model: Callable[[ModelJob, int | None], None],
    ) -> Job | None:
        """Do the same to both, and expect the same answer; a refusal changes nothing."""
        if not self.jobs:
            return None
        job_id, expected = self._job(which)
        before, end = self.store.get(job_id), self.store.end_offset()
        fence = _fence(whose, before)
        try:
            model(expected, NO_HOLDER if whose == "another id" else fence["attempt"])
        except (Lost, No) as no:
            self._is_refused(lambda: act(job_id, fence), code=4 if isinstance(no, Lost) else 1)
            assert (self.store.get(job_id), list(self.store.entries(end))) == (before, [])
            return None
        return act(job_id, fence)

    def _is_refused(self, act: Callable[[], Job], code: int) -> None:
        try:
            job = act()
        except MamError as refused:
            assert refused.exit_code == code, refused  # noqa: PT017 - a machine is no place for pytest.raises
            assert isinstance(refused, ClaimLost) == (code == 4)  # noqa: PT017
        else:
            raise AssertionError(f"the contract refuses this with {code}: {job}")

    def _job(self, which: int) -> tuple[str, ModelJob]:
        return list(self.jobs.items())[which % len(self.jobs)]

    def _settle(self) -> None:
        for model in self.jobs.values():
            model.settle(self.clocks)


def _fence(whose: str, job: Job) -> Fence:
    claim_id = {"attempt and id": job.claim_id, "another id": "another"}.get(whose)
    older = job.attempt - 1 if job.attempt else job.attempt + 2  # nothing is older than the first
    attempt = {"none": None, "older": older, "newer": job.attempt + 1}.get(whose, job.attempt)
    return {"attempt": attempt, "claim_id": claim_id}


class MemoryBesideModel(StoreBesideModel):
    def open_store(self) -> Store:
        return MemoryStore(self.clock)


class FilesBesideModel(StoreBesideModel):
    def open_store(self) -> Store:
        self.place = tempfile.mkdtemp(prefix="mam-model-")
        create_files_store(self.place)
        return FilesStore(self.place, self.clock)

    def reopen(self) -> None:
        self.store.close()
        self.store = FilesStore(self.place, self.clock)
        self.registry = Registry(self.store)

    def teardown(self) -> None:
        super().teardown()
        shutil.rmtree(self.place)


class SqliteBesideModel(StoreBesideModel):
    def open_store(self) -> Store:
        self.place = tempfile.mkdtemp(prefix="mam-model-")
        create_sqlite_store(f"{self.place}/jobs.db")
        return SqliteStore(f"{self.place}/jobs.db", self.clock)

    def reopen(self) -> None:
        self.store.close()
        self.store = SqliteStore(f"{self.place}/jobs.db", self.clock)
        self.registry = Registry(self.store)

    def teardown(self) -> None:
        super().teardown()
        shutil.rmtree(self.place)


TestMemory = MemoryBesideModel.TestCase
TestMemory.settings = settings(max_examples=150, stateful_step_count=50, deadline=None)
TestFiles = pytest.mark.slow(FilesBesideModel.TestCase)
TestFiles.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestSqlite = pytest.mark.slow(SqliteBesideModel.TestCase)
TestSqlite.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
