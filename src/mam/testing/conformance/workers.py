"""What a store keeps about workers, and what a person asks of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mam.jobs.lease import new_lease
from mam.jobs.workers import DRAIN, STOP, WorkerEntry
from mam.testing.conformance.base import StoreCase, register_and_claim, register_jobs, snapshot
from mam.testing.tasks import LABEL

if TYPE_CHECKING:
    from typing import Any

    from mam.registry import Registry
    from mam.stores.port import Store
    from mam.testing.clock import FakeClock

SECONDS = 60.0


def entry_of(store: Store, name: str = "anna@forge:71", **fields: Any) -> WorkerEntry:
    """A worker that is seen now."""
    now = store.clock.now()
    owner, _, pid = name.partition(":")
    given = {
        "name": name, "owner": name, "host": owner.partition("@")[2], "pid": int(pid), "labels": (LABEL, "tmux:büro"),
        "agents": ("codex", "shell"), "concurrency": 2, "job_id": None, "version": "0.2.0",
        "started_at": now.second, "seen_at": now.second, "lease": new_lease(SECONDS, now),
    }  # fmt: skip
    return WorkerEntry(**{**given, **fields})


class Workers(StoreCase):
    def test_a_worker_is_listed_as_it_was_noted(self, store: Store) -> None:
        entry = entry_of(store)

        assert store.note_worker(entry) is None

        assert store.workers() == [entry]

    def test_a_renewal_replaces_the_entry_and_prolongs_the_lease(self, store: Store, clock: FakeClock) -> None:
        store.note_worker(entry_of(store))
        clock.advance(SECONDS - 1)
        renewed = entry_of(store)
        store.note_worker(renewed)
        clock.advance(SECONDS - 1)

        assert store.workers() == [renewed]
        assert renewed.is_live(store.clock.now())

    def test_the_lease_of_a_killed_worker_expires(self, registry: Registry, store: Store, clock: FakeClock) -> None:
        store.note_worker(entry_of(store))
        assert [worker.name for worker in registry.live_workers()] == ["anna@forge:71"]

        clock.advance(SECONDS + 1)

        assert registry.live_workers() == []
        assert [worker.name for worker in store.workers()] == ["anna@forge:71"]

    def test_workers_of_two_hosts_are_two(self, registry: Registry, store: Store) -> None:
        store.note_worker(entry_of(store))
        store.note_worker(entry_of(store, "anna@mill:71"))

        assert sorted(worker.host for worker in registry.live_workers()) == ["forge", "mill"]

    def test_a_worker_learns_at_its_next_renewal_what_a_person_asked(self, store: Store) -> None:
        store.note_worker(entry_of(store))
        store.note_worker(entry_of(store, "anna@mill:71"))

        assert store.ask_worker("anna@forge:71", DRAIN)

        assert store.note_worker(entry_of(store)) == DRAIN
        assert store.note_worker(entry_of(store, "anna@mill:71")) is None
        assert {worker.name: worker.asked for worker in store.workers()} == {
            "anna@forge:71": DRAIN, "anna@mill:71": None
        }  # fmt: skip

    def test_a_worker_that_was_asked_to_stop_does_not_drain_instead(self, store: Store) -> None:
        store.note_worker(entry_of(store))
        assert store.ask_worker("anna@forge:71", DRAIN)
        assert store.ask_worker("anna@forge:71", DRAIN)
        assert store.note_worker(entry_of(store)) == DRAIN

        assert store.ask_worker("anna@forge:71", STOP)
        assert store.ask_worker("anna@forge:71", DRAIN)

        assert store.note_worker(entry_of(store)) == STOP

    def test_nothing_can_be_asked_of_an_unknown_worker(self, store: Store) -> None:
        assert not store.ask_worker("anna@forge:71", STOP)
        assert store.workers() == []

    def test_a_worker_that_is_forgotten_takes_along_what_was_asked(self, store: Store) -> None:
        store.note_worker(entry_of(store))
        store.ask_worker("anna@forge:71", STOP)

        store.forget_worker("anna@forge:71")
        store.forget_worker("anna@forge:71")

        assert store.workers() == []
        assert store.note_worker(entry_of(store)) is None

    def test_workers_leave_jobs_and_journal_alone(self, registry: Registry, store: Store) -> None:
        register_jobs(registry)
        before = snapshot(store)

        store.note_worker(entry_of(store))
        store.ask_worker("anna@forge:71", DRAIN)
        store.forget_worker("anna@forge:71")

        assert snapshot(store) == before

    def test_the_jobs_of_a_busy_worker_come_from_the_job_rows(self, registry: Registry, store: Store) -> None:
        mine = register_and_claim(registry)
        register_jobs(registry, 2)
        other = registry.pick(LABEL, owner="loop")
        assert other is not None
        store.note_worker(entry_of(store, owner="worker"))
        store.ask_worker("anna@forge:71", DRAIN)

        found = registry.holders()

        assert [(one.owner, [job.job_id for job in one.jobs]) for one in found] == [
            ("worker", [mine.job_id]), ("loop", [other.job_id])
        ]  # fmt: skip
        assert [one.worker and one.worker.asked for one in found] == [DRAIN, None]

    def test_explain_names_the_workers_that_serve_a_pending_job(self, registry: Registry, store: Store) -> None:
        (job_id,) = register_jobs(registry)
        assert f"No live worker serves the label {LABEL!r}" in " ".join(registry.explain(job_id)[1])

        store.note_worker(entry_of(store, "anna@mill:72", labels=("other",)))
        store.note_worker(entry_of(store, "anna@mill:73", job_id="f" * 32))
        assert "No live worker" in " ".join(registry.explain(job_id)[1])

        store.note_worker(entry_of(store))
        assert "Live workers that serve its label: anna@forge:71." in registry.explain(job_id)[1]

        store.ask_worker("anna@forge:71", DRAIN)
        assert "No live worker" in " ".join(registry.explain(job_id)[1])

    def test_a_label_that_no_worker_ever_served_is_reported_once_and_explained(
        self, registry: Registry, store: Store
    ) -> None:
        problem = "No live worker serves the label 'plain', and none has claimed a job of it yet; "
        first, second = (registry.register(prompt="p", agent="codex", label="plain").job for _ in range(2))
        assert registry.never_served(second) is None, "it was reported for the first"
        assert problem in " ".join(registry.explain(second.job_id)[1])
        other = registry.register(prompt="p", agent="codex", label="other").job
        assert "'other'" in (registry.never_served(other) or "")

        store.note_worker(entry_of(store, agents=("shell",), labels=("plain", "other")))
        assert registry.never_served(other) is None
        assert "None of them can run its agent, 'codex'" in " ".join(registry.explain(first.job_id)[1])
        store.note_worker(entry_of(store, labels=("plain",)))
        assert "None of them can run its agent" not in " ".join(registry.explain(first.job_id)[1])

        store.forget_worker("anna@forge:71")
        assert registry.pick("plain", owner="loop") is not None
        assert "No live worker serves the label 'plain'; " in " ".join(registry.explain(second.job_id)[1])


class DurableWorkers(StoreCase):
    def test_another_process_sees_a_worker_and_can_ask_it(self, store: Store, location: str, clock: FakeClock) -> None:
        store.note_worker(entry_of(store))
        other = self.open_store(location, clock)
        try:
            assert other.workers() == store.workers()
            assert other.ask_worker("anna@forge:71", DRAIN)
        finally:
            other.close()

        assert store.note_worker(entry_of(store)) == DRAIN
