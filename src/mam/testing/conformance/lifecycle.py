"""Which status may follow which, what each move leaves behind, and that nothing else happens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mam.errors import IllegalMove, Refused
from mam.events.event import EVENTS
from mam.jobs.change import audit_record, unchanged
from mam.jobs.status import Status
from mam.testing.conformance.base import (
    StoreCase,
    cancel_unless_ended,
    check_journal,
    history_lines,
    job_in_status,
    register_and_claim,
    snapshot,
    terminal_events,
    transitions_of,
)
from mam.util.clock import parse_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.jobs.change import Change
    from mam.jobs.record import Job
    from mam.registry import Registry
    from mam.stores.port import Store
    from mam.testing.clock import FakeClock
    from mam.util.clock import Moment

BY_HAND = {
    "pending": {"running", "completed", "error", "cancelled"},
    "waiting": {"pending", "error", "cancelled"},
    "running": {"completed", "error", "pending", "cancelled"},
    "completed": set(),
    "error": set(),
    "cancelled": set(),
}
"""What `status --set` may do. `completed` on a pending job is a claim and its end; `waiting` is never set."""

ENDS = ["completed", "error", "cancelled"]

ENDERS: dict[str, Callable[[Registry, str], Job]] = {
    "complete": lambda registry, job: registry.complete(job),
    "fail": lambda registry, job: registry.fail(job, reason="broken"),
    "cancel": lambda registry, job: registry.cancel(job),
    "set completed": lambda registry, job: registry.set_status(job, Status.COMPLETED),
    "set error": lambda registry, job: registry.set_status(job, Status.ERROR),
    "set cancelled": lambda registry, job: registry.set_status(job, Status.CANCELLED),
    "publish completed": lambda registry, job: registry.publish(job, event="completed", detail="well done"),
    "publish error": lambda registry, job: registry.publish(job, event="error", detail="broken"),
}
EVENT_OF_END = {"completed": "completed", "error": "error", "cancelled": "error"}


class Lifecycle(StoreCase):
    @pytest.mark.parametrize("status", list(Status))
    def test_only_legal_transitions_change_anything(self, registry: Registry, store: Store, status: Status) -> None:
        for to in Status:
            job = job_in_status(registry, status)
            before = snapshot(store)

            if to == status:
                assert registry.set_status(job.job_id, to) == job
                assert snapshot(store) == before
            elif to in BY_HAND[status]:
                assert registry.set_status(job.job_id, to).status == to
                assert registry.get(job.job_id).status == to
            else:
                with pytest.raises((IllegalMove, Refused), match=job.job_id) as refused:
                    registry.set_status(job.job_id, to)
                assert refused.value.exit_code == 1
                assert to in str(refused.value)
                assert to == "waiting" or status in str(refused.value), "it names both states"
                assert snapshot(store) == before
            cancel_unless_ended(registry, job.job_id)
        check_journal(store)

    @pytest.mark.parametrize("how", ["set", "publish"])
    def test_running_by_hand_is_a_claim_by_manual(
        self, registry: Registry, store: Store, clock: FakeClock, how: str
    ) -> None:
        job_id = job_in_status(registry, "pending").job_id

        match how:
            case "set":
                job = registry.set_status(job_id, Status.RUNNING)
            case _:
                job = registry.publish(job_id, event="started")

        assert (job.status, job.attempt, job.owner) == ("running", 1, "manual")
        assert job.lease is not None
        assert parse_time(job.lease.expires_at) == clock.now().wall_ms + job.timeout_sec * 1000
        assert transitions_of(store, job_id) == [("pending", "running")]

    @pytest.mark.parametrize("how", ["complete", "set completed", "publish completed"])
    def test_completed_on_a_pending_job_is_one_act_and_two_moves(
        self, registry: Registry, store: Store, how: str
    ) -> None:
        job_id = job_in_status(registry, "pending").job_id
        offset = store.end_offset()

        job = ENDERS[how](registry, job_id)

        assert (job.status, job.attempt, job.owner) == ("completed", 1, "manual")
        (entry,) = store.entries(offset)
        moves = [(line["from"], line["to"]) for line in entry.lines if line["event"] == "status_changed"]
        assert moves == [("pending", "running"), ("running", "completed")]

    @pytest.mark.parametrize("status", ["pending", "running"])
    def test_waiting_is_never_set_by_hand(self, registry: Registry, status: str) -> None:
        job = job_in_status(registry, status)

        with pytest.raises(Refused, match="waiting"):
            registry.set_status(job.job_id, Status.WAITING)

    @pytest.mark.parametrize("how", ENDERS)
    def test_every_end_stores_exactly_one_terminal_event(self, registry: Registry, store: Store, how: str) -> None:
        for status in ("pending", "waiting", "running"):
            job_id = job_in_status(registry, status).job_id
            offset = store.end_offset()

            if status == "waiting" and "complete" in how:
                with pytest.raises(IllegalMove):
                    ENDERS[how](registry, job_id)
                assert terminal_events(store, job_id) == []
                continue
            job = ENDERS[how](registry, job_id)

            assert job.status.ended
            assert job.lease is None
            assert job.ended_at is not None
            assert terminal_events(store, job_id) == [(EVENT_OF_END[job.status], job.status)]
            assert len(list(store.entries(offset))) == 1, "the move and its event are one act"
            assert store.events(job_id)[-1]["seq"] == job.last_seq
        check_journal(store)

    @pytest.mark.parametrize("status", ENDS)
    def test_a_finished_job_takes_no_event(self, registry: Registry, store: Store, status: str) -> None:
        job = job_in_status(registry, status)
        before = snapshot(store)

        for event in EVENTS:
            if event == status:
                assert registry.publish(job.job_id, event=event) == job
            else:
                with pytest.raises((Refused, IllegalMove)) as refused:
                    registry.publish(job.job_id, event=event)
                assert refused.value.exit_code == 1

            assert snapshot(store) == before, event

    def test_the_terminal_event_holds_the_text_of_the_writer(self, registry: Registry, store: Store) -> None:
        job = register_and_claim(registry)

        registry.publish(job.job_id, event="completed", detail="열 문제", data={"count": 10}, attempt=1)

        (event,) = store.events(job.job_id)
        assert (event["detail"], event["data"]["count"], event["data"]["status"]) == ("열 문제", 10, "completed")

    def test_result_and_reason_are_kept(self, registry: Registry) -> None:
        done, failed = register_and_claim(registry), register_and_claim(registry)

        registry.complete(done.job_id, attempt=1, result="42\n")
        registry.fail(failed.job_id, attempt=1, reason="no network")

        assert (registry.get(done.job_id).result, registry.get(done.job_id).checked) == ("42\n", False)
        assert registry.get(failed.job_id).reason == "no network"

    def test_progress_moves_nothing_and_costs_one_entry(self, registry: Registry, store: Store) -> None:
        job = register_and_claim(registry)
        offset = store.end_offset()

        after = registry.publish(job.job_id, event="progress", detail="half", attempt=1)

        assert (after.status, after.attempt, after.last_seq) == ("running", 1, 1)
        (entry,) = store.entries(offset)
        assert [told["event"] for told in entry.lines] == ["published"]

    def test_a_write_without_an_attempt_is_marked_unfenced(self, registry: Registry, store: Store) -> None:
        fenced, unfenced = register_and_claim(registry), register_and_claim(registry)

        registry.complete(fenced.job_id, attempt=1)
        registry.complete(unfenced.job_id)

        assert "unfenced" not in history_lines(store, fenced.job_id)[-2]
        assert history_lines(store, unfenced.job_id)[-2]["unfenced"] is True

    def test_an_act_that_raises_changes_nothing(self, registry: Registry, store: Store) -> None:
        job = job_in_status(registry, "pending")
        before = snapshot(store)

        def explode(_job: Job, _now: Moment) -> Change:
            raise Refused(why="exploded")

        with pytest.raises(Refused, match="exploded"):
            store.change(job.job_id, explode)

        assert snapshot(store) == before
        assert store.change(job.job_id, lambda job, _: unchanged(job)) == job, "the store still works"
        assert snapshot(store) == before, "no lines, no entry"

    def test_an_act_sees_the_job_as_it_is_and_the_time_of_the_store(
        self, registry: Registry, store: Store, clock: FakeClock
    ) -> None:
        job = register_and_claim(registry)
        seen = []

        def look(job: Job, now: Moment) -> Change:
            seen.append((job, now))
            return unchanged(job).then(job, audit_record("seen", now, job))

        store.change(job.job_id, look)

        assert [(found, now.wall_ms) for found, now in seen] == [(job, clock.now().wall_ms)]
        assert bool(seen[0][1].boot_id) is self.has_boot_clock
        assert history_lines(store, job.job_id)[-1]["event"] == "seen"

    def test_a_look_at_a_failure_changes_only_the_note(self, registry: Registry, clock: FakeClock) -> None:
        job_id = register_and_claim(registry).job_id
        failed = registry.fail(job_id, reason="broken", attempt=1)
        clock.advance(60_000)

        seen = registry.mark_seen(job_id, by="anna")

        assert seen == failed.replace(seen={"by": "anna", "at": clock.now().second})
        assert registry.get(job_id) == seen
        assert registry.mark_seen(job_id, by="anna") == seen
        assert not registry.needs_look(seen)
