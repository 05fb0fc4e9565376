"""A question is stored in the act that asks it, and answered once: by a person, by its deadline, or not at all."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from mam import questions
from mam.errors import AnswerTooLate, BadInput, ClaimLost, Refused
from mam.jobs import question_acts
from mam.jobs.human_answer import HumanAnswer
from mam.jobs.question import Draft, find_question, open_questions
from mam.jobs.question_acts import Answer
from mam.registry import Registry
from mam.stores.port import Query
from mam.testing import tasks
from mam.testing.conformance.base import (
    StoreCase,
    check_journal,
    claim_again,
    history_lines,
    register_and_claim,
    snapshot,
)

if TYPE_CHECKING:
    from mam.jobs.record import Job
    from mam.questions import Asked
    from mam.stores.port import Store
    from mam.testing.clock import FakeClock
    from mam.testing.races import RacePool

PUSH = Draft(kind="permission", text="git push", tool="Bash", input={"command": "git push origin main"})
DATABASE = Draft(kind="question", text="Which database?", choices=("sqlite", "postgres"))


def ask(registry: Registry, job: Job, draft: Draft = PUSH) -> Asked:
    return questions.ask(registry, job.job_id, draft, attempt=job.attempt, claim_id=job.claim_id)


def reply(asked: Asked, answer: str = "allow", **changes: object) -> Answer:
    question = asked.question
    given = Answer(
        number=question.number, attempt=question.attempt, digest=question.digest, answer=answer, by="anna@pc"
    )
    return given.replace(**changes)


class Questions(StoreCase):
    def test_a_question_is_asked_and_answered(self, registry: Registry, store: Store, clock: FakeClock) -> None:
        job = register_and_claim(registry)
        asked = ask(registry, job)

        assert [one.id for one in questions.open_now(registry)] == [f"{job.job_id}.1"]
        event = store.events(job.job_id)[-1]
        assert (event["event"], event["data"]) == ("permission_required", {"question": asked.id, "kind": "permission"})
        assert "git push" not in str(event), "what is asked stays in the store"
        clock.advance(40)
        questions.answer(registry, job.job_id, reply(asked, "deny", reason="not on Fridays"))

        closed = questions.find(registry, asked.id).question
        assert (closed.state, closed.answer, closed.reason) == ("answered", "deny", "not on Fridays")
        assert (closed.answered_by, closed.decided) == ("anna@pc", "person")
        line = history_lines(store, job.job_id)[-1]
        assert (line["event"], line["by"], line["answer"], line["after_seconds"]) == ("answered", "anna@pc", "deny", 40)
        assert questions.open_now(registry) == []
        assert registry.get(job.job_id).status == "running"
        check_journal(store)

    def test_the_first_answer_wins(self, registry: Registry, store: Store) -> None:
        job = register_and_claim(registry)
        asked = ask(registry, job)
        questions.answer(registry, job.job_id, reply(asked, "deny"))
        before = snapshot(store)

        for late in ("allow", "deny"):
            with pytest.raises(AnswerTooLate, match="was answered by anna@pc") as refused:
                questions.answer(registry, job.job_id, reply(asked, late))
            assert refused.value.exit_code == 4
        assert snapshot(store) == before

    def test_an_answer_to_something_else_changes_nothing(self, registry: Registry, store: Store) -> None:
        job = register_and_claim(registry)
        asked = ask(registry, job)
        before = snapshot(store)

        with pytest.raises(AnswerTooLate, match="not the question that was shown"):
            questions.answer(registry, job.job_id, reply(asked, digest="0" * 64))
        with pytest.raises(AnswerTooLate, match="belongs to attempt 1"):
            questions.answer(registry, job.job_id, reply(asked, attempt=2))
        with pytest.raises(Refused, match="no question 7"):
            questions.answer(registry, job.job_id, reply(asked, number=7))
        with pytest.raises(BadInput, match="allow, deny, always"):
            questions.answer(registry, job.job_id, reply(asked, "perhaps"))
        assert snapshot(store) == before

    def test_an_answer_is_one_of_the_choices(self, registry: Registry) -> None:
        job = register_and_claim(registry)
        asked = ask(registry, job, DATABASE)
        with pytest.raises(BadInput, match="sqlite, postgres"):
            questions.answer(registry, job.job_id, reply(asked, "oracle"))
        assert questions.answer(registry, job.job_id, reply(asked, "postgres")).question.answer == "postgres"

    @pytest.mark.parametrize("how", ["cancel", "complete", "fail", "release", "supervised"])
    def test_the_end_of_the_attempt_withdraws_its_questions(self, registry: Registry, store: Store, how: str) -> None:
        """A late answer then changes nothing, and the next attempt asks under a new id."""
        job = register_and_claim(registry)
        asked, other = ask(registry, job), ask(registry, job, DATABASE)
        questions.answer(registry, job.job_id, reply(other, "sqlite"))
        match how:
            case "cancel":
                registry.cancel(job.job_id)
            case "complete":
                registry.complete(job.job_id, attempt=1, claim_id=job.claim_id)
            case "fail":
                registry.fail(job.job_id, attempt=1, reason="broken", retryable=True)
            case "release":
                registry.release(job.job_id, attempt=1)
            case _:
                registry.fail(job.job_id, attempt=1, reason="broken")

        assert questions.find(registry, asked.id).question.state == "withdrawn"
        assert questions.find(registry, other.id).question.state == "answered"
        assert list(store.select(Query(asking=True))) == []
        before = snapshot(store)
        with pytest.raises(AnswerTooLate, match="was withdrawn"):
            questions.answer(registry, job.job_id, reply(asked))
        assert snapshot(store) == before
        if how == "release":
            again = ask(registry, claim_again(registry, job.job_id))
            assert (again.question.number, again.question.attempt) == (3, 2)
        check_journal(store)

    def test_a_takeover_withdraws_them_too(self, registry: Registry, store: Store, clock: FakeClock) -> None:
        """The asker was killed: its lease expires, and with the next claim the old attempt cannot ask."""
        job = register_and_claim(registry, lease_seconds=60)
        asked = ask(registry, job)
        clock.advance(61)
        claim_again(registry, job.job_id, lease_seconds=60)

        assert questions.find(registry, asked.id).question.state == "withdrawn"
        with pytest.raises(ClaimLost):
            ask(registry, job)
        check_journal(store)

    def test_a_deadline_that_passes_is_applied_by_the_next_sweep(
        self, registry: Registry, store: Store, clock: FakeClock
    ) -> None:
        """No process has to run at that moment, and the wall clock may step."""
        job = register_and_claim(registry, lease_seconds=7200)
        asked = ask(registry, job, PUSH.replace(deadline_seconds=600.0))
        later = ask(registry, job, DATABASE.replace(deadline_seconds=1200.0, default="sqlite"))
        due = store.due_in()
        assert due is not None
        assert 599 < due <= 600
        if self.has_boot_clock:
            clock.set_wall(86_400)
            store.sweep()
            assert len(open_questions(registry.get(job.job_id))) == 2, "the boot clock decides"
        clock.advance(601)

        with pytest.raises(AnswerTooLate, match="deadline"):
            questions.answer(registry, job.job_id, reply(asked))
        store.sweep()

        closed = questions.find(registry, asked.id).question
        assert (closed.state, closed.answer, closed.decided) == ("expired", "deny", "deadline")
        assert [one.id for one in questions.open_now(registry)] == [later.id]
        clock.advance(600)
        store.sweep()
        assert questions.find(registry, later.id).question.answer == "sqlite"
        job = registry.get(job.job_id)
        assert (job.status, job.attempt, job.losses) == ("running", 1, 0), "the claim is untouched"
        check_journal(store)

    def test_the_holder_keeps_its_claim_while_a_question_is_open(self, registry: Registry, clock: FakeClock) -> None:
        job = register_and_claim(registry, lease_seconds=60)
        asked = ask(registry, job)
        for _ in range(3):
            clock.advance(50)
            registry.heartbeat(job.job_id, attempt=1, claim_id=job.claim_id)
        assert questions.answer(registry, job.job_id, reply(asked)).question.answer == "allow"

    def test_a_job_that_may_not_ask_is_refused(self, registry: Registry, store: Store) -> None:
        job = register_and_claim(registry, may_ask=False)
        before = snapshot(store)
        with pytest.raises(Refused, match="--no-ask"):
            ask(registry, job)
        assert snapshot(store) == before

    def test_an_asker_that_no_longer_waits_withdraws(self, registry: Registry, store: Store) -> None:
        job = register_and_claim(registry)
        asked, other = ask(registry, job), ask(registry, job, DATABASE)
        withdraw = partial(question_acts.withdraw, number=asked.question.number, claim_id=job.claim_id)
        registry.act(job.job_id, "withdraw", partial(withdraw, attempt=1))

        assert questions.find(registry, asked.id).question.state == "withdrawn"
        assert [one.id for one in questions.open_now(registry)] == [other.id]
        before = snapshot(store)
        with pytest.raises(AnswerTooLate):
            questions.answer(registry, job.job_id, reply(asked))
        registry.act(job.job_id, "withdraw", partial(withdraw, attempt=1))
        with pytest.raises(ClaimLost):
            registry.act(job.job_id, "withdraw", partial(withdraw, attempt=2))
        assert snapshot(store) == before
        check_journal(store)

    def test_a_rule_decides_without_a_question(self, registry: Registry, store: Store) -> None:
        job = register_and_claim(registry)
        decide = partial(question_acts.decide, draft=PUSH, answer="deny", rule="deny git push", what="git push")
        registry.act(job.job_id, "decide", partial(decide, attempt=1, claim_id=job.claim_id))
        line = history_lines(store, job.job_id)[-1]
        assert (line["event"], line["answer"], line["rule"]) == ("decided", "deny", "deny git push")
        assert questions.open_now(registry) == []
        before = snapshot(store)
        with pytest.raises(ClaimLost):
            registry.act(job.job_id, "decide", partial(decide, attempt=2))
        assert snapshot(store) == before
        check_journal(store)

    def test_a_job_for_a_person_is_answered_in_one_act(self, registry: Registry, store: Store) -> None:
        """It is claimed, checked and completed, or ends in error; a late answer changes nothing."""
        job = registry.register(prompt="Look at it", agent="human").job
        given = HumanAnswer(answer="fine", by="anna@pc", seen=job)
        with pytest.raises(AnswerTooLate, match="not the job that was shown"):
            questions.answer_human(registry, given.replace(seen=job.replace(prompt="Look")))
        assert [one.job_id for one in questions.for_people(registry)] == [job.job_id]
        ended = questions.answer_human(registry, given)
        assert (ended.status, ended.result, ended.owner, ended.attempt) == ("completed", "fine", "anna@pc", 1)
        moves = [(line["from"], line["to"]) for line in history_lines(store, job.job_id) if "from" in line]
        assert moves == [("pending", "running"), ("running", "completed")]
        before = snapshot(store)
        with pytest.raises(AnswerTooLate, match="is completed"):
            questions.answer_human(registry, given)
        assert snapshot(store) == before
        other = registry.register(prompt="And this", agent="human").job
        denied = questions.answer_human(
            registry, HumanAnswer(answer="deny", by="anna@pc", seen=other, reason="no time")
        )
        assert (denied.status, denied.reason) == ("error", "denied by anna@pc: no time")
        assert questions.for_people(registry) == []
        check_journal(store)

    def test_many_questions_stay_bounded(self, registry: Registry) -> None:
        job = register_and_claim(registry)
        for _ in range(30):
            questions.answer(registry, job.job_id, reply(ask(registry, job)))
        still_open = [ask(registry, job) for _ in range(8)]
        with pytest.raises(Refused, match="8 open questions"):
            ask(registry, job)
        job = registry.get(job.job_id)
        assert len(job.questions) == 28
        assert find_question(job, 1) is None
        assert [one.number for one in open_questions(job)] == [one.question.number for one in still_open]

    def test_one_of_two_simultaneous_answers_wins(self, live: Store, pool: RacePool) -> None:
        registry = Registry(live)
        for _ in range(5):
            job = register_and_claim(registry)
            asked = ask(registry, job)
            answers = [reply(asked, word, by=f"racer{word}") for word in ("allow", "deny", "always", "allow")]
            got = pool.race([partial(tasks.answer_question, job_id=job.job_id, given=one) for one in answers])
            assert sorted(got) == [False, False, False, True]
            winner = answers[got.index(True)]
            closed = questions.find(registry, asked.id).question
            assert (closed.answer, closed.answered_by) == (winner.answer, winner.by)
            registry.complete(job.job_id, attempt=1)
        check_journal(live)

    def test_a_waiting_process_gets_the_answer(self, live: Store, pool: RacePool) -> None:
        registry = Registry(live)
        job = register_and_claim(registry)
        asked = ask(registry, job)
        waiter = pool.start(partial(tasks.wait_for_answer, question=asked.id))
        assert waiter.report() == "waiting"
        questions.answer(registry, job.job_id, reply(asked))
        assert waiter.result() == ("answered", "allow")
