"""The tests that every implementation of the session directory passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from mam.agents.acts import add_store, publish, refresh, remove, retire, stop
from mam.agents.cleanup import clean_up
from mam.agents.errors import GenerationConflict, LeaseInThePast, NewerRecord, NotPublished
from mam.agents.lookup import (
    AMBIGUOUS,
    EXPIRED,
    LIVE,
    MALFORMED,
    MISNAMED,
    MISSING,
    STOPPED,
    by_any,
    by_id,
    by_name,
    by_session,
)
from mam.agents.names import default_agent_id
from mam.agents.record import AgentRecord
from mam.agents.record_parser import record_from
from mam.errors import GenerationLost
from mam.testing.clock import FakeClock
from tests.agents.records import a_record, as_bytes, stopped, version_2, version_3

if TYPE_CHECKING:
    from mam.agents.port import Directory

GPU = default_agent_id("gpu")
DAY = 24 * 3600

Plant = Callable[[str, bytes], None]
"""Writes bytes where the record of an id is stored."""


class DirectorySuite:
    """A subclass provides `directory`, its `FakeClock`, and `plant` to write what mam would not write."""

    def published(self, directory: Directory, record: AgentRecord, lease: float | None = DAY) -> AgentRecord:
        result = directory.change(record.agent_id, publish(record, lease))
        assert result is not None
        return result

    # -- publish and resolve ---------------------------------------------------------------------------------------

    def test_a_published_record_is_found_by_name_id_and_session(self, directory: Directory) -> None:
        record = self.published(directory, a_record())

        for answer in (by_id(directory, GPU), by_session(directory, "gpu"), by_any(directory, GPU)):
            assert (answer.kind, answer.record) == (LIVE, record)
        for name in ("gpu", "MAM-gpu", "HOUMAO-gpu"):
            assert by_name(directory, name).live == record

    def test_a_lookup_in_an_empty_directory_is_a_result(self, directory: Directory) -> None:
        assert by_name(directory, "gpu").kind == MISSING
        assert by_id(directory, GPU).kind == MISSING
        assert by_session(directory, "gpu").kind == MISSING
        assert list(directory.read_all()) == []

    @pytest.mark.parametrize("name", ["", "..", ".", "a/b", "a b", "a.b", "x\0y", "MAM", "houmao", "mam-x", "é"])
    def test_a_lookup_by_an_invalid_name_is_a_result(self, directory: Directory, name: str) -> None:
        assert by_any(directory, name).kind == MISNAMED
        assert by_name(directory, name).kind == MISNAMED
        assert by_session(directory, name).kind == MISSING

    def test_a_session_is_found_by_its_exact_name(self, directory: Directory) -> None:
        for name in ("claude", "claude-2"):
            record = a_record(name)
            self.published(directory, record.replace(terminal=record.terminal.replace(current_session_name=name)))

        assert _id(by_session(directory, "claude").live) == default_agent_id("claude")
        assert _id(by_session(directory, "claude-2").live) == default_agent_id("claude-2")
        assert by_session(directory, "clau").kind == MISSING

    def test_two_ids_of_one_name_are_ambiguous(self, directory: Directory) -> None:
        self.published(directory, a_record(agent_id="one"))
        self.published(directory, a_record("HOUMAO-gpu", agent_id="two"))

        answer = by_name(directory, "gpu")

        assert (answer.kind, answer.candidates) == (AMBIGUOUS, ("one", "two"))
        assert by_id(directory, "two").kind == LIVE

    def test_an_old_record_beside_a_fresh_one_makes_nothing_ambiguous(
        self, directory: Directory, clock: FakeClock
    ) -> None:
        self.published(directory, a_record(agent_id="one"), lease=10)
        clock.advance(11)
        fresh = self.published(directory, a_record(agent_id="two"))

        assert by_name(directory, "gpu").live == fresh

    def test_groups_of_others_come_back_as_they_were(self, directory: Directory, plant: Plant) -> None:
        value = version_2()
        plant(GPU, as_bytes(value))

        record = by_name(directory, "gpu").live

        assert record is not None
        assert record.groups == {"gateway": value["gateway"], "mailbox": value["mailbox"]}
        refreshed = directory.change(GPU, refresh("generation-1"))
        assert refreshed is not None
        written = by_id(directory, GPU).live
        assert written is not None
        assert written.to_json()["mailbox"] == value["mailbox"]
        assert written.to_json()["schema_version"] == 3
        session = "HOUMAO-gpu-1700000000000"
        assert (written.terminal.current_session_name, written.terminal.last_session_name) == (session, session)

    # -- the lease -------------------------------------------------------------------------------------------------

    def test_a_lease_holds_up_to_its_last_millisecond(self, directory: Directory, clock: FakeClock) -> None:
        self.published(directory, a_record(), lease=10)
        clock.advance(10)
        assert by_name(directory, "gpu").kind == LIVE
        clock.advance(0.001)
        assert by_name(directory, "gpu").kind == EXPIRED
        assert by_session(directory, "gpu").kind == EXPIRED

    def test_the_default_lease_is_a_day(self, directory: Directory, clock: FakeClock) -> None:
        record = a_record(liveness=None)
        self.published(directory, record, lease=None)
        clock.advance(DAY)
        assert by_name(directory, "gpu").kind == LIVE
        clock.advance(1)
        assert by_name(directory, "gpu").kind == EXPIRED

    def test_a_record_that_brings_its_own_lease_keeps_it(self, directory: Directory) -> None:
        record = self.published(directory, a_record(), lease=None)

        assert record.liveness is not None
        assert record.liveness.lease_expires_at == "2026-01-02T00:00:00Z"

    def test_a_lease_of_the_past_is_not_published(self, directory: Directory, clock: FakeClock) -> None:
        clock.advance(2 * DAY)
        with pytest.raises(LeaseInThePast, match="2026-01-02T00:00:00Z"):
            directory.change(GPU, publish(a_record()))
        assert directory.read(GPU).kind == MISSING

    def test_a_very_long_lease_is_valid(self, directory: Directory, clock: FakeClock) -> None:
        self.published(directory, a_record(), lease=36_500 * DAY)
        clock.advance(31 * DAY)
        assert by_name(directory, "gpu").kind == LIVE

    def test_refreshing_keeps_the_generation_and_renews_the_lease(self, directory: Directory, clock: FakeClock) -> None:
        self.published(directory, a_record(), lease=10)
        clock.advance(9)
        directory.change(GPU, refresh("generation-1"))
        clock.advance(9)
        record = by_name(directory, "gpu").live
        assert record is not None
        assert record.generation_id == "generation-1"

    def test_an_expired_lease_alone_takes_nothing_away(self, directory: Directory, clock: FakeClock) -> None:
        self.published(directory, a_record(), lease=10)
        clock.advance(60)
        directory.change(GPU, refresh("generation-1"))
        assert by_name(directory, "gpu").kind == LIVE

    # -- whose it is -----------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("state", ["active", "relaunching"])
    def test_a_fresh_record_refuses_another_generation(self, directory: Directory, state: str) -> None:
        record = a_record()
        kept = self.published(directory, record.replace(lifecycle=record.lifecycle.replace(state=state)))

        with pytest.raises(GenerationConflict, match=r"generation-1 until .*generation-2 was refused"):
            self.published(directory, a_record(generation="generation-2"))

        assert directory.read(GPU).record == kept

    def test_the_same_generation_may_publish_again(self, directory: Directory) -> None:
        self.published(directory, a_record())
        self.published(directory, a_record())

    @pytest.mark.parametrize("state", ["stopped", "retired"])
    def test_an_ended_session_does_not_block_another_generation(self, directory: Directory, state: str) -> None:
        self.published(directory, record_from(stopped(state=state)))
        assert by_name(directory, "gpu").kind == STOPPED
        self.published(directory, a_record(generation="generation-2"))
        assert by_name(directory, "gpu").kind == LIVE

    def test_one_that_was_replaced_never_comes_back(self, directory: Directory, clock: FakeClock) -> None:
        self.published(directory, a_record(), lease=10)
        clock.advance(11)
        self.published(directory, a_record(generation="generation-2"))

        for act in (refresh("generation-1"), remove("generation-1"), stop("generation-1", "x")):
            with pytest.raises(GenerationLost, match="has been replaced"):
                directory.change(GPU, act)
        directory.change(GPU, stop("generation-2", "done"))
        with pytest.raises(GenerationConflict, match="which replaced it"):
            self.published(directory, a_record())
        self.published(directory, a_record(generation="generation-3"))

    def test_stores_are_remembered_from_one_generation_to_the_next(self, directory: Directory) -> None:
        self.published(directory, a_record())
        for store in ("/one/.mam/jobs", "/two/.mam/jobs", "/one/.mam/jobs"):
            directory.change(GPU, add_store("generation-1", store))
        with pytest.raises(GenerationLost):
            directory.change(GPU, add_store("generation-2", "/three"))
        directory.change(GPU, stop("generation-1", "over"))

        record = self.published(directory, a_record(generation="generation-2"))

        assert record.mam.stores == ("/one/.mam/jobs", "/two/.mam/jobs")

    def test_stopping_keeps_what_a_restart_needs(self, directory: Directory) -> None:
        self.published(directory, a_record())
        record = directory.change(GPU, stop("generation-1", "operator_stop"))

        assert record == directory.read(GPU).record
        assert record is not None
        assert (record.terminal.current_session_name, record.terminal.last_session_name) == (None, "gpu")
        assert record.lifecycle.stop_reason == "operator_stop"
        assert record.liveness is None
        with pytest.raises(NotPublished, match="stopped"):
            directory.change(GPU, refresh("generation-1"))
        again = directory.change(GPU, stop("generation-1", "another reason"))
        assert again == record

    def test_a_retired_session_is_not_started_again(self, directory: Directory) -> None:
        self.published(directory, a_record())
        record = directory.change(GPU, retire("generation-1", "over"))
        assert record is not None
        assert not record.lifecycle.relaunchable

    def test_removing_is_for_ones_own(self, directory: Directory) -> None:
        self.published(directory, a_record())
        with pytest.raises(GenerationLost):
            directory.change(GPU, remove("generation-2"))
        assert by_name(directory, "gpu").kind == LIVE
        assert directory.change(GPU, remove("generation-1")) is None
        assert by_name(directory, "gpu").kind == MISSING
        with pytest.raises(NotPublished):
            directory.change(GPU, remove("generation-1"))

    # -- what is no record -----------------------------------------------------------------------------------------

    @pytest.mark.parametrize(
        "content",
        [b"", b"{not-json}", b"[]", b'"text"', b"{}", b"{" * 100_000, b'{"schema_version": 1}', b'{"a": NaN}'],
    )
    def test_an_invalid_record_does_not_block_publishing(
        self, directory: Directory, plant: Plant, content: bytes
    ) -> None:
        plant(GPU, content)

        assert by_id(directory, GPU).kind in (MALFORMED, "invalid")
        assert by_name(directory, "gpu").kind in (MALFORMED, "invalid")
        with pytest.raises(NotPublished):
            directory.change(GPU, remove("generation-1"))

        self.published(directory, a_record())
        assert by_name(directory, "gpu").kind == LIVE
        assert len(list(directory.leftovers())) == 1

    def test_a_record_under_another_id_is_not_found(self, directory: Directory, plant: Plant) -> None:
        plant("elsewhere", as_bytes(version_3()))

        assert by_id(directory, "elsewhere").kind == "invalid"
        assert by_name(directory, "gpu").kind == MISSING
        assert by_session(directory, "gpu").kind == MISSING

    def test_a_newer_record_is_left_alone(self, directory: Directory, plant: Plant, clock: FakeClock) -> None:
        content = as_bytes({**version_3(), "schema_version": 4, "new": 1})
        plant(GPU, content)
        clock.advance(10 * DAY)

        assert by_id(directory, GPU).kind == "newer"
        for act in (publish(a_record(), DAY), refresh("generation-1"), remove("generation-1")):
            with pytest.raises(NewerRecord, match="schema_version 4"):
                directory.change(GPU, act)
        report = clean_up(directory, dry_run=False, grace_seconds=0)
        assert [item.agent_id for item in report.kept] == [GPU]

    # -- cleanup ---------------------------------------------------------------------------------------------------

    def test_cleanup_takes_what_is_expired_and_malformed_and_keeps_the_rest(
        self, directory: Directory, clock: FakeClock, plant: Plant
    ) -> None:
        self.published(directory, a_record("old", agent_id="a-old"), lease=10)
        plant("b-bad", b"{not-json}")
        self.published(directory, a_record("new", agent_id="c-new"))
        self.published(directory, record_from({**stopped("over"), "agent_id": "d-over"}))
        clock.advance(11)

        rehearsal = clean_up(directory, dry_run=True, grace_seconds=0)
        assert [item.agent_id for item in rehearsal.planned] == ["a-old", "b-bad"]
        assert [item.agent_id for item in rehearsal.kept] == ["c-new", "d-over"]
        assert len(list(directory.read_all())) == 4

        report = clean_up(directory, dry_run=False, grace_seconds=0)
        assert [item.agent_id for item in report.applied] == ["a-old", "b-bad"]
        assert [item.agent_id for item in report.kept] == ["c-new", "d-over"]
        assert report.failed == ()
        assert all(item.reason for item in (*report.applied, *report.kept))
        assert [lookup.agent_id for lookup in directory.read_all()] == ["c-new", "d-over"]
        assert list(directory.leftovers()) == []

    def test_the_grace_is_over_when_it_is_over(self, directory: Directory, clock: FakeClock) -> None:
        self.published(directory, a_record(), lease=10)
        clock.advance(310)
        assert clean_up(directory, dry_run=False).applied == ()
        clock.advance(0.001)
        assert len(clean_up(directory, dry_run=False).applied) == 1

    def test_cleanup_keeps_a_record_that_was_published_again_meanwhile(
        self, directory: Directory, clock: FakeClock
    ) -> None:
        self.published(directory, a_record(), lease=10)
        clock.advance(1000)
        lookups = list(directory.read_all())
        directory.change(GPU, refresh("generation-1"))
        directory.read_all = lambda: iter(lookups)  # type: ignore[method-assign]

        report = clean_up(directory, dry_run=False)

        assert [item.agent_id for item in report.kept] == [GPU]
        assert by_id(directory, GPU).kind == LIVE


def _id(record: AgentRecord | None) -> str | None:
    return None if record is None else record.agent_id
