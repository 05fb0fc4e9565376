"""How jobs come into a store, and how they are found again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mam.errors import AlreadyRegistered, Refused, UnknownJob
from mam.jobs.draft import draft_job
from mam.jobs.status import Status
from mam.stores.port import Query
from mam.testing.conformance.base import (
    StoreCase,
    check_journal,
    claim_again,
    job_in_status,
    pick_id,
    register_jobs,
    snapshot,
)
from mam.testing.tasks import LABEL

if TYPE_CHECKING:
    from mam.jobs.change import Change
    from mam.jobs.record import Job
    from mam.registry import Registry
    from mam.stores.port import Store
    from mam.testing.clock import FakeClock
    from mam.util.clock import Moment


class Registrations(StoreCase):
    def test_a_new_job_is_pending_with_the_defaults(self, registry: Registry, clock: FakeClock) -> None:
        registration = registry.register(prompt="정렬 문제 10개", agent="claude-code", label=LABEL)
        job = registration.job

        assert registration.created
        assert (job.status, job.prompt, job.agent_session) == ("pending", "정렬 문제 10개", LABEL)
        assert (job.timeout_sec, job.idle_timeout_sec, job.last_seq, job.auth_token) == (3600, 120, 0, None)
        assert job.topic_prefix == f"python/mqtt/jobs/{job.job_id}"
        assert job.created_at == job.updated_at == clock.now().second
        assert registry.get(job.job_id) == job

    def test_a_job_without_a_label_is_meant_for_its_agent(self, registry: Registry) -> None:
        assert registry.register(prompt="p", agent="codex").job.agent_session == "codex"

    def test_numbers_only_grow(self, registry: Registry, clock: FakeClock) -> None:
        numbers = []
        for step in (0, -3600, 60):
            clock.set_wall(step)
            numbers.append(registry.get(register_jobs(registry)[0]).number)

        assert numbers == sorted(set(numbers))
        assert numbers[0] > 0

    def test_an_id_that_is_taken_is_refused_and_nothing_is_overwritten(self, registry: Registry, store: Store) -> None:
        registry.register(prompt="the first", agent="codex", job_id="abc12345")
        before = snapshot(store)

        with pytest.raises(AlreadyRegistered, match="abc12345"):
            registry.register(prompt="the second", agent="codex", job_id="abc12345")

        assert snapshot(store) == before

    def test_many_at_once_keep_their_order(self, registry: Registry, store: Store) -> None:
        register_jobs(registry)
        drafts = [draft_job(job_id=job_id, prompt=job_id, agent="codex", label="many") for job_id in ("b", "c", "a")]

        jobs = store.register_all(drafts)

        assert [job.job_id for job in jobs] == ["b", "c", "a"]
        assert [store.get(job.job_id) for job in jobs] == jobs
        numbers = [job.number for job in [*store.select(Query())][::-1]]
        assert numbers == sorted(set(numbers))
        assert [pick_id(registry, "many") for _ in range(4)] == ["b", "c", "a", None]
        assert store.register_all([]) == []
        check_journal(store)

    @pytest.mark.parametrize("taken", ["there", "archived", "new"])
    def test_of_many_one_whose_id_is_taken_takes_the_others_with_it(
        self, registry: Registry, store: Store, taken: str
    ) -> None:
        for job_id in ("archived", "there"):
            registry.register(prompt="the first", agent="codex", job_id=job_id)
        registry.cancel("archived")
        assert registry.archive(["archived"]) == ["archived"]
        before = snapshot(store)
        drafts = [draft_job(job_id=job_id, prompt="p", agent="codex") for job_id in ("new", taken, "newer")]

        with pytest.raises(AlreadyRegistered, match=taken):
            store.register_all(drafts)

        assert snapshot(store) == before

    def test_ids_differ_by_case(self, registry: Registry) -> None:
        for job_id in ("Abc", "abc", "aBC"):
            registry.register(prompt=job_id, agent="codex", job_id=job_id)

        assert [registry.get(job_id).prompt for job_id in ("abc", "Abc", "aBC")] == ["abc", "Abc", "aBC"]

    def test_the_same_key_gives_the_same_job_even_with_other_parameters(self, registry: Registry, store: Store) -> None:
        first = registry.register(prompt="once", agent="codex", key="nightly")
        before = snapshot(store)

        again = registry.register(prompt="something else", agent="claude-code", key="nightly")

        assert (again.job, again.created) == (first.job, False)
        assert snapshot(store) == before

    @pytest.mark.parametrize("status", list(Status))
    def test_the_key_of_a_job_holds_in_every_status(self, registry: Registry, status: Status) -> None:
        job_id = registry.register(prompt="once", agent="codex", label=LABEL, key="nightly").job.job_id
        if status is Status.WAITING:
            claim_again(registry, job_id)
            registry.fail(job_id, reason="no luck", retryable=True)
        else:
            registry.set_status(job_id, status)

        again = registry.register(prompt="once", agent="codex", label=LABEL, key="nightly")

        assert (again.created, again.job.job_id, again.job.status) == (False, job_id, status)

    def test_other_keys_and_no_key_are_other_jobs(self, registry: Registry) -> None:
        keys = ["nightly", "Nightly", "nightly ", None, None]
        ids = {registry.register(prompt="p", agent="codex", key=key).job.job_id for key in keys}

        assert len(ids) == len(keys)

    @pytest.mark.parametrize("status", ["completed", "error", "cancelled"])
    def test_a_retry_is_a_new_job_and_a_second_one_is_the_same(
        self, registry: Registry, store: Store, status: str
    ) -> None:
        old = job_in_status(registry, status)
        first = registry.retry(old.job_id)
        before = snapshot(store)

        again = registry.retry(old.job_id)

        assert first.created
        assert first.job.retry_of == old.job_id
        assert (first.job.status, first.job.prompt, first.job.attempt) == ("pending", old.prompt, 0)
        assert (again.job.job_id, again.created) == (first.job.job_id, False)
        assert registry.get(old.job_id) == old
        assert snapshot(store) == before

    @pytest.mark.parametrize("status", ["pending", "waiting", "running"])
    def test_only_an_ended_job_is_retried(self, registry: Registry, store: Store, status: str) -> None:
        job = job_in_status(registry, status)
        before = snapshot(store)

        with pytest.raises(Refused):
            registry.retry(job.job_id)

        assert snapshot(store) == before

    def test_fields_that_mam_does_not_know_survive_every_step(self, registry: Registry, store: Store) -> None:
        extra = {"x_team": "데이터", "x_tags": ["a", {"b": None}], "x_weight": 1.5}
        draft = draft_job(job_id="with-more", prompt="p", agent="codex", label=LABEL).replace(unknown=extra)

        store.register(draft)
        claim_again(registry, "with-more")
        registry.publish("with-more", event="progress", attempt=1)
        registry.complete("with-more", attempt=1)

        job = registry.get("with-more")
        assert job.unknown == extra
        assert job.to_json()["x_team"] == "데이터"
        assert registry.retry("with-more").job.unknown == extra

    def test_a_prompt_comes_back_as_it_was_given(self, registry: Registry) -> None:
        for prompt in ("line\nline\r\n\ttab", "\x1b[31mred\x07", "\u2028\ufeff\U0001f600 \\ud800 \"'", "x" * 1_048_576):
            (job_id,) = register_jobs(registry, prompt=prompt)
            assert registry.get(job_id).prompt == prompt

    def test_ids_are_found_by_how_they_begin_in_order_and_no_more_than_asked(
        self, registry: Registry, store: Store
    ) -> None:
        for job_id in ("ab2", "ab_", "b", "ab1", "a", "ab1x", "AB1", "ab-"):
            registry.register(prompt="p", agent="codex", job_id=job_id)

        assert store.ids_with_prefix("ab", 10) == ["ab-", "ab1", "ab1x", "ab2", "ab_"]
        assert store.ids_with_prefix("ab", 2) == ["ab-", "ab1"]
        assert store.ids_with_prefix("ab_", 10) == ["ab_"]
        assert store.ids_with_prefix("zz", 10) == []

    def test_jobs_are_listed_newest_first_even_if_the_clock_stepped_back(
        self, registry: Registry, clock: FakeClock
    ) -> None:
        ids = []
        for step in (0, -3600, 7200):
            clock.set_wall(step)
            ids += register_jobs(registry)

        assert [job.job_id for job in registry.select(Query())] == ids[::-1]

    def test_a_list_shows_what_was_asked_for(self, registry: Registry, clock: FakeClock) -> None:
        jobs = {status: job_in_status(registry, status).job_id for status in Status if status is not Status.PENDING}
        clock.advance(60)
        later = clock.now().second
        (pending,) = register_jobs(registry)
        (other,) = register_jobs(registry, label="somebody else")

        def listed(query: Query) -> list[str]:
            return [job.job_id for job in registry.select(query)]

        ends = frozenset({Status.COMPLETED, Status.ERROR})
        assert listed(Query(statuses=ends)) == [jobs[Status.ERROR], jobs[Status.COMPLETED]]
        assert listed(Query(statuses=frozenset({Status.PENDING}), label=LABEL)) == [pending]
        assert listed(Query(label="somebody")) == []
        assert listed(Query(since=later)) == [other, pending]
        assert listed(Query(statuses=frozenset())) == []

    def test_the_queue_lists_pending_jobs_alone(self, registry: Registry, store: Store, clock: FakeClock) -> None:
        for status in sorted(Status, key=lambda status: status is Status.PENDING):
            job_in_status(registry, status)
        clock.advance(60)
        later = clock.now().second
        first, second = register_jobs(registry, 2, priority=3)
        (other,) = register_jobs(registry, label="other")

        def queued(label: str | None) -> list[tuple[str, str, int]]:
            return [(one.job_id, one.label, one.priority) for one in store.queue(label, since=later)]

        assert queued(None) == [(first, LABEL, 3), (second, LABEL, 3), (other, "other", 0)]
        assert queued(LABEL) == [(first, LABEL, 3), (second, LABEL, 3)]
        assert [one.number for one in store.queue()] == sorted(
            job.number for job in store.select(Query(statuses=frozenset({Status.PENDING})))
        )

    def test_an_unregistered_job_is_unknown(self, registry: Registry, store: Store) -> None:
        register_jobs(registry)
        before = snapshot(store)

        with pytest.raises(UnknownJob, match="nobody"):
            store.get("nobody")
        with pytest.raises(UnknownJob, match="nobody"):
            store.change("nobody", _must_not_be_called)

        assert snapshot(store) == before


def _must_not_be_called(job: Job, now: Moment) -> Change:
    raise AssertionError(f"asked about {job} at {now}")
