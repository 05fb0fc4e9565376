"""The clock of one attempt: the lease, the two thirds, the limits, and orders from outside. Real runs, short leases."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from mam import questions
from mam.errors import BadRecord, StoreUnavailable
from mam.jobs.question import Draft
from mam.jobs.question_acts import Answer
from mam.registry import Registry
from mam.stores.memory import MemoryStore
from mam.work import supervision
from mam.work.claim import Claim
from mam.work.outcome import was_interrupted
from mam.work.output_log import read
from mam.work.process.messages import Ended
from mam.work.supervision import Supervision
from tests.waiting import await_that
from tests.work.doors import held_job, unchanged_but
from tests.work.support import PATIENCE, shell

if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.jobs.record import Job
    from mam.stores.port import Act
    from mam.work.process.runner import GuardianClient, Run

SHORT = 0.3
LONG = 600.0
SLEEP = "echo up; exec sleep 1000"


class UnreliableStore(MemoryStore):
    """A store that is away whenever `mood` has something to say."""

    mood: Exception | None = None
    writes = 0

    def change(self, job_id: str, act: Act) -> Job:
        if self.mood is not None:
            raise self.mood
        self.writes += 1
        return super().change(job_id, act)


@pytest.fixture
def store() -> UnreliableStore:
    return UnreliableStore()


@pytest.fixture
def registry(store: UnreliableStore) -> Registry:
    return Registry(store)


def watch(registry: Registry, job: Job, lease: float = SHORT, grace: float = 0.2) -> Supervision:
    return Supervision(Claim(registry, job), job, lease, grace)


def ended(watching_: Supervision, run: Run) -> Ended:
    watching_.attach(run)
    last = watching_.wait_until_ended(run)
    assert isinstance(last, Ended)
    return last


def lines(store: UnreliableStore, job: Job, event: str) -> list[dict[str, Any]]:
    return [line for entry in store.entries(None) for line in entry.lines if line["event"] == event]


class TestTheLease:
    def test_it_is_renewed_while_the_agent_runs(
        self, registry: Registry, store: UnreliableStore, guardian: GuardianClient, log: str
    ) -> None:
        job = held_job(registry, idle_timeout_sec=0)
        with watch(registry, job, lease=1.5) as clock, guardian.start(shell(SLEEP), log) as run:
            clock.attach(run)
            await_that(lambda: len(lines(store, job, "renewed")) >= 4, "it is not renewed")
            clock.stop(supervision.STOPPING)
            assert isinstance(clock.wait_until_ended(run), Ended)
        assert registry.get(job.job_id).status == "running"

    def test_it_is_renewed_while_the_attempt_is_busy_otherwise(
        self, registry: Registry, store: UnreliableStore
    ) -> None:
        """With a checkout, or a check, which may take longer than a lease."""
        job = held_job(registry)
        with watch(registry, job) as clock:
            await_that(lambda: len(lines(store, job, "renewed")) >= 6, "it is not renewed")
            assert clock.ended_because is None

    def test_and_while_it_is_being_ended(
        self, registry: Registry, store: UnreliableStore, guardian: GuardianClient, log: str
    ) -> None:
        job = held_job(registry)
        stubborn = shell("trap '' TERM; echo up; while :; do sleep 0.05; done")
        with watch(registry, job, grace=4 * SHORT) as clock, guardian.start(stubborn, log) as run:
            clock.attach(run)
            await_that(lambda: b"up" in b"".join(read(log)), "it has not set its trap")
            clock.stop(supervision.STOPPING)
            before = len(lines(store, job, "renewed"))
            assert isinstance(clock.wait_until_ended(run), Ended)
            assert len(lines(store, job, "renewed")) > before

    def test_nothing_is_renewed_afterwards(self, registry: Registry, store: UnreliableStore) -> None:
        with watch(registry, held_job(registry)) as clock:
            await_that(lambda: store.writes >= 3, "it is not renewed")
        assert not clock._thread.is_alive()

    def test_the_workers_breath_is_no_sign_of_the_agent(self, registry: Registry, store: UnreliableStore) -> None:
        job = held_job(registry)
        seen: list[bool] = []

        class Listening(Claim):
            def renew(self, lease_seconds: float, *, heard: bool) -> Job:
                seen.append(heard)
                return super().renew(lease_seconds, heard=heard)

        with Supervision(Listening(registry, job), job, SHORT, 0.1) as clock:
            await_that(lambda: len(seen) >= 2, "it is not renewed")
            assert not any(seen)
            clock.note_activity()
            await_that(lambda: any(seen), "the sign was not heard")

    @pytest.mark.parametrize(
        "problem",
        [
            StoreUnavailable(store="far", problem="away"),
            BadRecord(file="x.json", problem="not JSON"),
            OSError(28, "No space left on device"),
        ],
        ids=["away", "spoilt", "full"],
    )
    def test_a_worker_that_cannot_renew_by_two_thirds_ends_its_agent(
        self, registry: Registry, store: UnreliableStore, guardian: GuardianClient, log: str, problem: Exception
    ) -> None:
        job = held_job(registry, idle_timeout_sec=0)
        with watch(registry, job) as clock, guardian.start(shell(SLEEP), log) as run:
            store.mood = problem
            last = ended(clock, run)
        assert was_interrupted(last, clock.ended_because), "by the worker or by the keeper"
        assert last.signal == 15

    def test_a_short_absence_costs_nothing(
        self, registry: Registry, store: UnreliableStore, guardian: GuardianClient, log: str
    ) -> None:
        job = held_job(registry, idle_timeout_sec=0)
        with watch(registry, job, lease=3.0) as clock, guardian.start(shell("exec sleep 1.5"), log) as run:
            clock.attach(run)
            store.mood = StoreUnavailable(store="far", problem="away")
            back = threading.Timer(1.3, lambda: setattr(store, "mood", None))
            back.start()
            assert clock.wait_until_ended(run).__class__ is Ended
            assert clock.ended_because is None
            back.join()

    def test_the_keeper_ends_it_when_the_worker_cannot(
        self, registry: Registry, store: UnreliableStore, guardian: GuardianClient, log: str
    ) -> None:
        """A store that does not answer keeps the clock's thread for as long as it likes."""
        job = held_job(registry, idle_timeout_sec=0)
        answer = threading.Event()

        class Hanging(Claim):
            def renew(self, lease_seconds: float, *, heard: bool) -> Job:
                answer.wait(PATIENCE)
                return super().renew(lease_seconds, heard=heard)

        with Supervision(Hanging(registry, job), job, SHORT, 0.1) as clock, guardian.start(shell(SLEEP), log) as run:
            last = ended(clock, run)
            assert last.tree_ended_because == "the worker did not renew in time"
            answer.set()


class TestOrders:
    @pytest.mark.parametrize(
        "revoke",
        [
            lambda registry, job: registry.cancel(job.job_id),
            lambda registry, job: registry.release(job.job_id),
            lambda registry, job: registry.act(
                job.job_id, "test", lambda found, now: unchanged_but(found, now, claim_id="another")
            ),
        ],
        ids=["cancelled", "released", "claimed by another under the same attempt"],
    )
    def test_a_claim_that_is_gone_is_noticed_by_the_renewal(
        self, registry: Registry, guardian: GuardianClient, log: str, revoke: Callable[[Registry, Job], object]
    ) -> None:
        job = held_job(registry)
        with watch(registry, job) as clock, guardian.start(shell(SLEEP), log) as run:
            revoke(registry, job)
            ended(clock, run)
        assert clock.ended_because == supervision.REVOKED

    def test_a_cancel_is_noticed_before_the_next_renewal(
        self, registry: Registry, guardian: GuardianClient, log: str
    ) -> None:
        job = held_job(registry)
        with watch(registry, job, lease=LONG) as clock, guardian.start(shell(SLEEP), log) as run:
            clock.attach(run)
            clock.record_changed(registry.cancel(job.job_id))
            clock.wait_until_ended(run)
        assert clock.ended_because == supervision.REVOKED

    def test_news_of_another_claim_of_the_same_attempt_are_such_news(self, registry: Registry) -> None:
        job = held_job(registry)
        with watch(registry, job, lease=LONG) as clock:
            clock.record_changed(job)
            assert clock.ended_because is None
            clock.record_changed(job.replace(claim_id="another"))
            assert clock.ended_because == supervision.REVOKED

    def test_an_order_before_there_is_a_run_reaches_it(
        self, registry: Registry, guardian: GuardianClient, log: str
    ) -> None:
        with watch(registry, held_job(registry)) as clock:
            clock.stop(supervision.STOPPING)
            with guardian.start(shell(SLEEP), log) as run:
                assert ended(clock, run).tree_ended_because == supervision.STOPPING

    def test_the_first_reason_counts(self, registry: Registry) -> None:
        with watch(registry, held_job(registry)) as clock:
            clock.stop(supervision.STOPPING)
            clock.record_changed(None)
            assert clock.ended_because == supervision.STOPPING


class TestLimits:
    def test_an_agent_that_takes_too_long_is_ended(
        self, registry: Registry, guardian: GuardianClient, log: str
    ) -> None:
        job = held_job(registry, timeout_sec=1)
        with watch(registry, job, lease=LONG) as clock, guardian.start(shell(SLEEP), log) as run:
            assert ended(clock, run).tree_ended_because == supervision.TIMED_OUT
        assert clock.ended_because == supervision.TIMED_OUT

    def test_a_limit_of_zero_means_no_limit(self, registry: Registry, guardian: GuardianClient, log: str) -> None:
        job = held_job(registry, timeout_sec=0, idle_timeout_sec=0)
        with watch(registry, job, lease=LONG) as clock, guardian.start(shell("sleep 0.5"), log) as run:
            assert ended(clock, run).exit_code == 0
        assert clock.ended_because is None

    def test_its_clocks_stop_while_it_asks(self, registry: Registry, guardian: GuardianClient, log: str) -> None:
        """The question is older than the timeout before it is answered; only then does the rest of the time run."""
        job = held_job(registry, timeout_sec=1, idle_timeout_sec=1)
        asked = questions.ask(registry, job.job_id, Draft(kind="question", text="Which?"), attempt=job.attempt)
        with watch(registry, job, lease=LONG) as clock, guardian.start(shell(SLEEP), log) as run:
            clock.attach(run)
            clock.record_changed(asked.job)
            assert not clock.ends_within(run, 1.5), "neither the timeout nor the idle timeout counts"
            assert clock.ended_because is None
            known = asked.question
            given = Answer(number=1, attempt=known.attempt, digest=known.digest, answer="this", by="me@here")
            clock.record_changed(questions.answer(registry, job.job_id, given).job)
            last = clock.wait_until_ended(run)
        assert isinstance(last, Ended)
        assert last.tree_ended_because == supervision.TIMED_OUT

    def test_quiet_is_reported_once_until_activity(
        self, registry: Registry, store: UnreliableStore, guardian: GuardianClient, log: str
    ) -> None:
        job = held_job(registry, idle_timeout_sec=1)

        def told() -> int:
            return sum(event["detail"] == "quiet for 1 s" for event in store.events(job.job_id) if "detail" in event)

        with watch(registry, job, lease=LONG) as clock, guardian.start(shell("exec sleep 1000"), log) as run:
            clock.attach(run)
            await_that(lambda: told() == 1, "its silence was not told")
            clock.note_activity()
            await_that(lambda: told() == 2, "its second silence was not told")
            assert clock.ended_because is None
            clock.stop(supervision.STOPPING)
            clock.wait_until_ended(run)

    def test_silence_ends_it_only_when_asked_to(self, registry: Registry, guardian: GuardianClient, log: str) -> None:
        job = held_job(registry, idle_timeout_sec=1, on_idle="stop")
        with watch(registry, job, lease=LONG) as clock, guardian.start(shell("exec sleep 1000"), log) as run:
            assert ended(clock, run).tree_ended_because == supervision.SILENT
        assert clock.ended_because == supervision.SILENT

    def test_waiting_for_its_children_is_no_silence(
        self, registry: Registry, guardian: GuardianClient, log: str
    ) -> None:
        job = held_job(registry, idle_timeout_sec=1, on_idle="stop")
        asked: list[str] = []
        with watch(registry, job, lease=LONG) as clock, guardian.start(shell("exec sleep 1000"), log) as run:
            clock.waits_for_children = lambda: len(asked) < 3 and not asked.append("?")  # type: ignore[func-returns-value]
            assert ended(clock, run).tree_ended_because == supervision.SILENT
        assert len(asked) == 3, "its silence counts only from when it waits no more"

    def test_output_is_no_silence(self, registry: Registry, guardian: GuardianClient, log: str) -> None:
        job = held_job(registry, idle_timeout_sec=2, on_idle="stop")
        chatty = shell("for i in 1 2 3 4 5 6 7; do echo $i; sleep 0.5; done")
        with watch(registry, job, lease=LONG) as clock, guardian.start(chatty, log) as run:
            assert ended(clock, run).exit_code == 0
        assert clock.ended_because is None

    def test_no_job_is_quiet_after_its_end(self, registry: Registry, guardian: GuardianClient, log: str) -> None:
        """While its work is checked, which has a limit of its own."""
        job = held_job(registry, idle_timeout_sec=1, on_idle="stop")
        with watch(registry, job, lease=LONG) as clock, guardian.start(shell("exit 0"), log) as run:
            ended(clock, run)
            assert clock._deadlines()[1] == float("inf")

    def test_an_agent_that_reported_its_end_must_exit(
        self, registry: Registry, guardian: GuardianClient, log: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(supervision, "LINGER_SECONDS", 0.2)
        job = held_job(registry, idle_timeout_sec=0)
        with watch(registry, job, lease=LONG) as clock, guardian.start(shell(SLEEP), log) as run:
            clock.attach(run)
            clock.record_changed(registry.complete(job.job_id, attempt=1, result="42"))
            last = clock.wait_until_ended(run)
            assert isinstance(last, Ended)
            assert last.tree_ended_because == supervision.LINGERED
            assert (clock.ended_because, clock.lingered) == (None, True), "its work is looked at all the same"
            with guardian.start(shell("exit 0"), f"{log}-check") as script:
                assert ended(clock, script).exit_code == 0, "the check is not ended for the agent's lingering"


class TestByHand:
    def test_until_an_outcome_is_reported(self, registry: Registry) -> None:
        job = held_job(registry)
        with watch(registry, job) as clock:
            registry.complete(job.job_id, attempt=1)
            clock.wait_until_reported()  # the renewal notices, were there no other news
            assert clock.ended_because is None

    def test_or_until_it_is_over(self, registry: Registry) -> None:
        job = held_job(registry, timeout_sec=1)
        with watch(registry, job) as clock:
            clock.wait_until_reported()
            assert clock.ended_because == supervision.TIMED_OUT
