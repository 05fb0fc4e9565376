"""What other programs write into the directory changes nothing until it is adopted, and never moves the fence."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from mam.errors import AlreadyRegistered, ClaimLost
from mam.jobs.status import Status
from mam.registry import Registry
from mam.stores.files.adopt import adopt, foreign_ids
from mam.stores.files.store import FilesStore
from mam.stores.port import Query
from tests.files.conftest import StoreDir, old_record
from tests.files.invariants import check, replay

MAM_FIELDS = ("attempt", "lease", "number", "owner", "losses", "priority")


def adopted(registry: Registry, *job_ids: str) -> list[tuple[str, str]]:
    store = registry.store
    assert isinstance(store, FilesStore)
    return [(one.job_id, one.outcome) for one in adopt(store, job_ids or foreign_ids(store))]


def lines(registry: Registry, job_id: str) -> list[dict[str, Any]]:
    return [line for entry in registry.store.entries(None) if entry.job_id == job_id for line in entry.lines]


# -- a registry of the old scripts -------------------------------------------------------------------------------------


def test_an_old_registry_is_picked_from_oldest_first(store_dir: StoreDir) -> None:
    store_dir.rename_in("bbbb2222", old_record("bbbb2222", created_at="2026-06-19T09:30:01Z"))
    store_dir.rename_in("aaaa1111", old_record("aaaa1111", created_at="2026-06-19T09:30:01Z"))
    store_dir.rename_in("cccc3333", old_record("cccc3333", created_at="2026-06-19T18:30:00+09:00"))
    registry = store_dir.open()
    picked = [registry.pick("tmux:claude", owner="me") for _ in range(4)]
    assert [job.job_id if job else None for job in picked] == ["cccc3333", "aaaa1111", "bbbb2222", None]
    check(store_dir, registry)


def test_it_is_adopted_with_one_line_the_first_time_only(store_dir: StoreDir, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(3):
        store_dir.rename_in(f"old{number:05}", old_record(f"old{number:05}"))
    for number in range(9):
        store_dir.file(f"bad{number:05}").write_text("{")
    store_dir.open()
    store_dir.open()
    (said,) = [record.getMessage() for record in caplog.records if record.name == "mam.store"]
    assert "adopted 3 jobs" in said
    assert "and 4 more" in said


def test_an_old_running_record_gets_a_lease_and_a_claim(store_dir: StoreDir) -> None:
    store_dir.rename_in("abc12345", old_record("abc12345", status="running"))
    job = store_dir.open().get("abc12345")
    assert job.lease is not None
    assert job.lease.seconds == 3600
    assert job.claim_id is not None


@pytest.mark.parametrize("by", ["opening", "adopting"])
def test_inline_secrets_move_out_when_the_record_is_taken_over(store_dir: StoreDir, by: str) -> None:
    registry = store_dir.open() if by == "adopting" else None
    broker = {"host": "localhost", "port": 1883, "tls": False, "username": "u", "password": "canary-password"}
    store_dir.rename_in("abc12345", old_record("abc12345", auth_token="canary-token", broker=broker))
    if registry is not None:
        assert adopted(registry) == [("abc12345", "new")]
    assert store_dir.open().pick("tmux:claude", owner="me") is not None
    secrets = store_dir.path / ".store" / "secrets"
    assert secrets.stat().st_mode & 0o777 == 0o600
    assert "canary-token" in secrets.read_text()
    assert "canary-password" in secrets.read_text()
    for path in store_dir.path.rglob("*"):
        if path.is_file() and path != secrets:
            assert b"canary" not in path.read_bytes(), path
    assert store_dir.fields("abc12345")["broker"]["username"] == "u"


def test_unknown_fields_survive_every_act(store_dir: StoreDir) -> None:
    store_dir.rename_in("abc12345", old_record("abc12345", x_team={"name": "blue"}, expected_artifacts=[]))
    registry = store_dir.open()
    registry.pick("tmux:claude", owner="me")
    registry.publish("abc12345", event="progress", detail="half", attempt=1)
    registry.complete("abc12345", attempt=1)
    assert store_dir.fields("abc12345")["x_team"] == {"name": "blue"}
    check(store_dir, registry)


# -- a registry of mam's -----------------------------------------------------------------------------------------------


def test_a_new_file_is_not_picked_until_it_is_adopted(store_dir: StoreDir) -> None:
    registry = store_dir.open()
    store_dir.rename_in("abc12345", old_record("abc12345"))
    assert registry.pick("tmux:claude", owner="me") is None
    assert [problem.file for problem in registry.store.problems()] == ["abc12345.json"]
    assert adopted(registry) == [("abc12345", "new")]
    assert registry.pick("tmux:claude", owner="me") is not None
    check(store_dir, registry)


def test_a_removed_file_takes_no_job_away(store_dir: StoreDir) -> None:
    registry = store_dir.open()
    job_id = registry.register(prompt="p", agent="codex").job.job_id
    store_dir.file(job_id).unlink()
    assert "is gone" in registry.store.problems()[0].problem
    assert registry.pick("codex", owner="me") is not None
    check(store_dir, registry)


def test_a_file_in_the_place_of_a_new_job_is_not_overwritten(store_dir: StoreDir) -> None:
    registry = store_dir.open()
    store_dir.rename_in("abc12345", old_record("abc12345"))
    before = store_dir.snapshot()["abc12345.json"]
    with pytest.raises(AlreadyRegistered):
        registry.register(prompt="mine", agent="codex", job_id="abc12345")
    assert store_dir.snapshot()["abc12345.json"] == before
    assert list(registry.select(Query())) == []


def test_fields_that_an_old_script_drops_come_back(store_dir: StoreDir) -> None:
    registry = store_dir.open()
    job_id = registry.register(prompt="p", agent="codex", priority=7).job.job_id
    claimed = registry.pick("codex", owner="me")
    assert claimed is not None

    def rewrite(fields: dict[str, Any]) -> None:
        for name in MAM_FIELDS:
            del fields[name]
        fields["updated_at"] = "2026-06-19T09:32:01Z"

    store_dir.edit(job_id, rewrite)
    assert adopted(registry) == [(job_id, "changed")]
    job = registry.get(job_id)
    assert (job.attempt, job.priority, job.owner, job.lease) == (1, 7, "me", claimed.lease)
    assert set(MAM_FIELDS) <= store_dir.fields(job_id).keys()
    assert registry.complete(job_id, attempt=1).status is Status.COMPLETED


def test_an_adopted_completion_is_unfenced_and_has_one_event(store_dir: StoreDir) -> None:
    registry = store_dir.open()
    job_id = registry.register(prompt="p", agent="codex").job.job_id
    registry.pick("codex", owner="me")
    store_dir.edit(job_id, lambda fields: fields.update(status="completed"))
    assert registry.get(job_id).status is Status.RUNNING
    adopted(registry)
    assert registry.get(job_id).status is Status.COMPLETED
    assert [event["event"] for event in registry.store.events(job_id)] == ["completed"]
    moves = [line for line in lines(registry, job_id) if line["event"] == "status_changed"]
    assert (moves[-1]["by"], moves[-1]["unfenced"]) == ("foreign", True)
    with pytest.raises(ClaimLost):
        registry.complete(job_id, attempt=1)
    check(store_dir, registry)


def test_an_illegal_move_keeps_the_status_and_is_reported(store_dir: StoreDir) -> None:
    registry = store_dir.open()
    job_id = registry.register(prompt="p", agent="codex").job.job_id
    registry.cancel(job_id)
    store_dir.edit(job_id, lambda fields: fields.update(status="running", note="kept"))
    assert adopted(registry) == [(job_id, "refused")]
    job = registry.get(job_id)
    assert (job.status, job.unknown) == (Status.CANCELLED, {"note": "kept"})
    assert store_dir.fields(job_id)["status"] == "cancelled"
    assert lines(registry, job_id)[-1]["event"] == "refused"
    check(store_dir, registry)


def test_the_fence_cannot_be_moved_from_outside(store_dir: StoreDir) -> None:
    registry = store_dir.open()
    job_id = registry.register(prompt="p", agent="codex").job.job_id
    held = registry.pick("codex", owner="me")
    assert held is not None
    store_dir.edit(job_id, lambda fields: fields.update(attempt=99, number=99, lease=None, claim_id="0" * 32))
    adopted(registry)
    job = registry.get(job_id)
    assert (job.attempt, job.number, job.claim_id) == (1, 1, held.claim_id)
    assert store_dir.fields(job_id)["attempt"] == 1
    assert registry.heartbeat(job_id, attempt=1).status is Status.RUNNING


def test_numbers_that_an_old_script_took_are_marked_and_never_go_back(store_dir: StoreDir) -> None:
    registry = store_dir.open()
    job_id = registry.register(prompt="p", agent="codex").job.job_id
    registry.publish(job_id, event="started")
    store_dir.edit(job_id, lambda fields: fields.update(last_seq=4))
    adopted(registry)
    store_dir.edit(job_id, lambda fields: fields.update(last_seq=0))
    adopted(registry)
    assert registry.next_seq(job_id) == 5
    assert registry.store.events(job_id)[1:] == [
        {"marker": "imported", "seq": 2, "upto": 4},
        {"marker": "reserved", "seq": 5, "upto": 5},
    ]


def test_a_touched_file_is_no_change(store_dir: StoreDir) -> None:
    registry = store_dir.open()
    job_id = registry.register(prompt="p", agent="codex").job.job_id
    end = registry.store.end_offset()
    os.utime(store_dir.file(job_id), ns=(1, 1))
    assert registry.store.problems() == []
    assert adopted(registry, job_id) == [(job_id, "unchanged")]
    assert registry.store.end_offset() == end


def test_an_old_file_of_mams_own_moves_no_job_back(store_dir: StoreDir) -> None:
    registry = store_dir.open()
    job_id = registry.register(prompt="p", agent="codex").job.job_id
    old = store_dir.file(job_id).read_bytes()
    registry.complete(job_id)
    store_dir.file(job_id).write_bytes(old)
    assert adopted(registry, job_id) == [(job_id, "unchanged")]
    assert registry.get(job_id).status is Status.COMPLETED
    check(store_dir, registry)


def test_a_prompt_that_a_person_edits_reaches_the_journal(store_dir: StoreDir) -> None:
    registry = store_dir.open()
    job_id = registry.register(prompt="old words", agent="codex").job.job_id
    store_dir.edit(job_id, lambda fields: fields.update(prompt="new words"))
    adopted(registry)
    assert registry.get(job_id).prompt == "new words"
    assert replay(registry)[job_id] == registry.get(job_id).to_json()
    check(store_dir, registry)


# -- keys --------------------------------------------------------------------------------------------------------------


def test_adoption_does_not_make_a_second_job_run_under_a_key(store_dir: StoreDir) -> None:
    registry = store_dir.open()
    first, second = (registry.register(prompt="p", agent="codex", exclusive="gpu").job.job_id for _ in range(2))
    assert registry.pick("codex", owner="me") is not None
    store_dir.edit(second, lambda fields: fields.update(status="running"))
    assert adopted(registry) == [(second, "refused")]
    assert registry.get(second).status is Status.PENDING
    assert registry.store.holder("gpu") == first


def test_a_copied_record_leaves_its_keys_to_the_job_that_has_them(store_dir: StoreDir) -> None:
    registry = store_dir.open()
    first = registry.register(prompt="p", agent="codex", exclusive="gpu", key="once").job.job_id
    assert registry.pick("codex", owner="me") is not None
    store_dir.rename_in("copy", {**store_dir.fields(first), "job_id": "copy", "number": 0})
    assert adopted(registry) == [("copy", "new")]
    copy = registry.get("copy")
    assert (copy.status, copy.key, copy.attempt) == (Status.PENDING, None, 1)
    assert registry.register(prompt="again", agent="codex", key="once").job.job_id == first
    check(store_dir, registry)


def test_a_record_of_another_registry_is_a_change(store_dir: StoreDir, tmp_path: Path) -> None:
    """Its digest is right, but it is another registry's."""
    registry = store_dir.open()
    other = StoreDir(tmp_path / "other")
    other.clock.new_id()  # so that its database gets another name
    for where in (registry, other.open()):
        where.register(prompt="p", agent="codex", job_id="same")
    text = other.file("same").read_bytes()
    other.close()
    store_dir.file("same").write_bytes(text)
    assert len(registry.store.problems()) == 1
    registry.cancel("same")
    assert [path.read_bytes() for path in (store_dir.path / ".store/aside").iterdir()] == [text]
    assert json.loads(store_dir.file("same").read_bytes())["status"] == "cancelled"
