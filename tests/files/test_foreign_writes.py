"""What others write into the directory: taken over, restored, refused, and never trusted with the fence."""

from __future__ import annotations

import os
from typing import Any

import pytest

from mam.errors import ClaimLost, UnknownJob
from mam.jobs.status import Status
from mam.stores.port import Query
from tests.files.conftest import Place, old_record
from tests.files.invariants import check, replay

MAM_FIELDS = ("attempt", "lease", "number", "owner", "losses", "priority")


def lines(place: Place, job_id: str) -> list[dict[str, Any]]:
    entries = place.open().store.entries(None)
    return [line for entry in entries if entry.job_id == job_id for line in entry.lines]


def test_an_old_registry_is_picked_from_oldest_first(place: Place) -> None:
    place.rename_in("bbbb2222", old_record("bbbb2222", created_at="2026-06-19T09:30:01Z"))
    place.rename_in("aaaa1111", old_record("aaaa1111", created_at="2026-06-19T09:30:01Z"))
    place.rename_in("cccc3333", old_record("cccc3333", created_at="2026-06-19T09:30:00Z"))
    registry = place.open()
    picked = [registry.pick("tmux:claude", owner="me") for _ in range(4)]
    assert [job.job_id if job else None for job in picked] == ["cccc3333", "aaaa1111", "bbbb2222", None]


def test_looking_at_an_old_registry_leaves_its_records_as_they_are(place: Place) -> None:
    for job_id, status in (("abc12345", "pending"), ("def67890", "completed")):
        place.rename_in(job_id, old_record(job_id, status=status, last_seq=3))
    before = {name: data for name, data in place.snapshot().items() if name.endswith(".json")}
    assert len(list(place.open().select(Query()))) == 2
    assert {name: data for name, data in place.snapshot().items() if name.endswith(".json")} == before


def test_a_record_renamed_in_is_seen_by_the_next_act_of_an_open_store(place: Place) -> None:
    registry = place.open()
    assert registry.pick("tmux:claude", owner="me") is None
    place.rename_in("abc12345", old_record("abc12345"))
    job = registry.pick("tmux:claude", owner="me")
    assert job is not None
    assert job.job_id == "abc12345"


def test_renames_right_after_an_act_are_seen_however_quickly_they_follow(place: Place) -> None:
    """Within one tick of the file system's clock the directory's own time would not tell."""
    registry = place.open()
    for number in range(30):
        registry.register(prompt="mine", agent="codex")
        place.rename_in(f"foreign{number}", old_record(f"foreign{number}"))
        assert registry.get(f"foreign{number}").status is Status.PENDING


def test_a_removed_record_is_gone_at_the_next_act_and_its_history_is_not(place: Place) -> None:
    registry = place.open()
    job = registry.register(prompt="p", agent="codex").job
    place.file(job.job_id).unlink()
    assert registry.pick("codex", owner="me") is None
    with pytest.raises(UnknownJob):
        registry.get(job.job_id)
    assert [line["event"] for line in lines(place, job.job_id)] == ["registered", "removed"]


def test_an_old_pick_is_a_manual_claim_with_a_lease(place: Place) -> None:
    registry = place.open()
    job_id = registry.register(prompt="p", agent="codex").job.job_id
    place.edit(job_id, lambda fields: fields.update(status="running"))
    job = registry.get(job_id)
    assert (job.status, job.attempt, job.owner) == (Status.RUNNING, 1, "manual")
    assert job.lease is not None
    assert place.fields(job_id)["attempt"] == 1


def test_an_old_running_record_gets_a_lease_when_it_is_first_seen(place: Place) -> None:
    place.rename_in("abc12345", old_record("abc12345", status="running"))
    job = place.open().get("abc12345")
    assert job.lease is not None
    assert job.lease.seconds == 3600


def test_fields_that_an_old_script_drops_come_back(place: Place) -> None:
    registry = place.open()
    job_id = registry.register(prompt="p", agent="codex", priority=7).job.job_id
    claimed = registry.pick("codex", owner="me")
    assert claimed is not None

    def rewrite(fields: dict[str, Any]) -> None:
        for name in MAM_FIELDS:
            del fields[name]
        fields["updated_at"] = "2026-06-19T09:32:01Z"

    place.edit(job_id, rewrite)
    job = registry.get(job_id)
    assert (job.attempt, job.priority, job.owner, job.lease) == (1, 7, "me", claimed.lease)
    assert set(MAM_FIELDS) <= place.fields(job_id).keys()
    assert registry.complete(job_id, attempt=1).status is Status.COMPLETED


def test_a_foreign_completion_is_unfenced_and_tells_the_world_once(place: Place) -> None:
    registry = place.open()
    job_id = registry.register(prompt="p", agent="codex").job.job_id
    registry.pick("codex", owner="me")
    place.edit(job_id, lambda fields: fields.update(status="completed"))
    assert registry.get(job_id).status is Status.COMPLETED
    assert [event["event"] for event in registry.store.events(job_id)] == ["completed"]
    moves = [line for line in lines(place, job_id) if line["event"] == "status_changed"]
    assert moves[-1]["unfenced"] is True
    with pytest.raises(ClaimLost):
        registry.complete(job_id, attempt=1)


def test_an_illegal_foreign_move_keeps_the_registrys_status_and_is_reported(place: Place) -> None:
    registry = place.open()
    job_id = registry.register(prompt="p", agent="codex").job.job_id
    registry.cancel(job_id)
    place.edit(job_id, lambda fields: fields.update(status="running", note="kept"))
    job = registry.get(job_id)
    assert job.status is Status.CANCELLED
    assert job.unknown == {"note": "kept"}
    assert place.fields(job_id)["status"] == "cancelled"
    problems = registry.store.problems()
    assert [problem.file for problem in problems] == [f"{job_id}.json"]
    assert "cancelled" in problems[0].problem
    assert registry.store.problems() == [], "what is mended is told once"
    assert "running" in problems[0].problem


def test_the_fence_cannot_be_moved_from_outside(place: Place) -> None:
    registry = place.open()
    job_id = registry.register(prompt="p", agent="codex").job.job_id
    registry.pick("codex", owner="me")
    place.edit(job_id, lambda fields: fields.update(attempt=99, number=99, lease=None))
    job = registry.get(job_id)
    assert (job.attempt, job.number) == (1, 1)
    assert place.fields(job_id)["attempt"] == 1
    assert registry.heartbeat(job_id, attempt=1).status is Status.RUNNING


def test_numbers_that_an_old_script_took_are_marked_as_imported(place: Place) -> None:
    registry = place.open()
    job_id = registry.register(prompt="p", agent="codex").job.job_id
    registry.publish(job_id, event="started")
    place.edit(job_id, lambda fields: fields.update(last_seq=4))
    assert registry.next_seq(job_id) == 5
    assert registry.store.events(job_id)[1:] == [
        {"marker": "imported", "seq": 2, "upto": 4},
        {"marker": "reserved", "seq": 5, "upto": 5},
    ]


def test_sequence_numbers_never_go_back(place: Place) -> None:
    registry = place.open()
    job_id = registry.register(prompt="p", agent="codex").job.job_id
    registry.publish(job_id, event="started")
    place.edit(job_id, lambda fields: fields.update(last_seq=0))
    assert registry.next_seq(job_id) == 2


def test_an_edit_in_place_is_seen_when_the_job_is_touched_and_by_list(place: Place) -> None:
    registry = place.open()
    ids = [registry.register(prompt="p", agent="codex").job.job_id for _ in range(2)]
    for job_id in ids:
        data = place.file(job_id).read_bytes()
        with open(place.file(job_id), "r+b") as file:
            file.write(data.replace(b'"agent": "codex"', b'"agent": "other"'))
    assert registry.get(ids[0]).agent == "other"
    assert {job.agent for job in registry.select(Query())} == {"other"}
    assert place.open().get(ids[1]).agent == "other"


def test_a_touched_file_is_no_news(place: Place) -> None:
    registry = place.open()
    job_id = registry.register(prompt="p", agent="codex").job.job_id
    end = registry.store.end()
    os.utime(place.file(job_id), ns=(1, 1))
    assert registry.get(job_id).status is Status.PENDING
    assert registry.store.end() == end


def test_inline_secrets_move_out_at_the_first_rewrite(place: Place) -> None:
    broker = {"host": "localhost", "port": 1883, "tls": False, "username": "u", "password": "canary-password"}
    place.rename_in("abc12345", old_record("abc12345", auth_token="canary-token", broker=broker))
    registry = place.open()
    job = registry.pick("tmux:claude", owner="me")
    assert job is not None
    secrets = place.path / ".store" / "secrets"
    assert secrets.stat().st_mode & 0o777 == 0o600
    assert "canary-token" in secrets.read_text()
    assert "canary-password" in secrets.read_text()
    for path in place.path.rglob("*"):
        if path.is_file() and path != secrets:
            assert b"canary" not in path.read_bytes(), path
    assert place.fields("abc12345")["broker"]["username"] == "u"


def test_unknown_fields_survive_every_act(place: Place) -> None:
    place.rename_in("abc12345", old_record("abc12345", x_team={"name": "blue"}, expected_artifacts=[]))
    registry = place.open()
    registry.pick("tmux:claude", owner="me")
    registry.publish("abc12345", event="progress", detail="half", attempt=1)
    registry.complete("abc12345", attempt=1)
    assert place.fields("abc12345")["x_team"] == {"name": "blue"}


def test_a_registry_whose_store_folder_was_deleted_goes_on(place: Place) -> None:
    registry = place.open()
    ids = [registry.register(prompt=f"p{number}", agent="codex").job.job_id for number in range(3)]
    registry.pick("codex", owner="me")
    registry.store.close()
    for path in sorted((place.path / ".store").rglob("*"), reverse=True):
        path.unlink()
    registry = place.open()
    assert registry.complete(ids[0], attempt=1).status is Status.COMPLETED
    second = registry.pick("codex", owner="me")
    assert second is not None
    assert second.job_id == ids[1]
    assert registry.register(prompt="p", agent="codex").job.number == 4


def test_a_prompt_that_somebody_edits_reaches_the_journal(place: Place) -> None:
    registry = place.open()
    job_id = registry.register(prompt="old words", agent="codex").job.job_id
    place.edit(job_id, lambda fields: fields.update(prompt="new words"))
    assert registry.get(job_id).prompt == "new words"
    assert replay(registry)[job_id] == registry.get(job_id).to_json()
    check(place, registry)
