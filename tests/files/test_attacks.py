"""One file, one cache, one process in the wrong state: it costs what it must, and never the registry or its fence."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mam.errors import BadInput, BadRecord, ClaimLost, UnknownJob
from mam.jobs.status import Status
from mam.registry import Registry
from mam.stores.files.lock import registry_lock
from mam.stores.files.store import FilesStore
from mam.stores.port import Query
from tests.files.conftest import Place, old_record
from tests.files.invariants import check

EVIL = "evil0001"


@pytest.mark.parametrize(
    "field",
    [
        {"priority": 10**23},
        {"agent_session": "\ud800"},
        {"key": "\ud800"},
        {"status": "running", "timeout_sec": 10**30},
        {"timeout_sec": 10**12},
        {"attempt": 2**70},
        {"last_seq": 2**60},
        {"lease": {"expires_at": "2026-06-19T09:30:00.000Z", "boot_id": "b", "boot_ms": 2**70}},
        {"lease": {"expires_at": "2026-06-19T09:30:00.000Z", "seconds": 1e300}},
        {"cost": float("inf")},
    ],
)
def test_a_value_that_no_store_can_hold_is_one_bad_record(place: Place, field: dict[str, Any]) -> None:
    registry = place.open()
    good = registry.register(prompt="p", agent="codex").job.job_id
    text = json.dumps(old_record(EVIL, **field)).replace("Infinity", "1e400")
    place.file(EVIL).write_text(text, encoding="utf-8")
    assert [job.job_id for job in registry.select(Query())] == [good]
    assert [problem.file for problem in registry.store.problems()] == [f"{EVIL}.json"]
    with pytest.raises(BadRecord):
        registry.cancel(EVIL)
    picked = registry.pick("codex", owner="me")
    assert picked is not None
    assert picked.job_id == good


def a_directory(path: Path) -> None:
    path.mkdir()


def a_link(path: Path) -> None:
    path.symlink_to(path.parent / "elsewhere")


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def garbage(text: str) -> Callable[[Path], None]:
    return lambda path: (path.write_text(text, encoding="utf-8"), None)[1]


@pytest.mark.parametrize("make", [a_directory, a_link, a_pipe])
def test_an_event_log_that_is_none_costs_only_that_log(place: Place, make: Callable[[Path], None]) -> None:
    registry = place.open()
    job_id = registry.register(prompt="p", agent="codex").job.job_id
    make(place.path / f"{job_id}.events.log")
    assert registry.publish(job_id, event="started").last_seq == 1
    assert registry.complete(job_id).status is Status.COMPLETED
    assert registry.register(prompt="other", agent="codex").created
    assert [problem.file for problem in registry.store.problems()] == [f"{job_id}.events.log"]
    assert not (place.path / "elsewhere").exists()


@pytest.mark.parametrize(
    "line", ['{"seq":1,"upto":"x"}\n', '{"seq":1,"upto":null}\n', "[" * 200_000 + "\n", '{"seq":999999}\n', "torn"]
)
def test_odd_lines_in_an_event_log_hide_no_event(place: Place, line: str) -> None:
    registry = place.open()
    job_id = registry.register(prompt="p", agent="codex").job.job_id
    garbage(line)(place.path / f"{job_id}.events.log")
    for _ in range(2):
        registry.publish(job_id, event="progress")
    told = [event["seq"] for event in place.open().store.events(job_id) if event.get("event") == "progress"]
    assert told == [1, 2]


def test_a_large_event_is_not_told_twice_by_the_next_holder(place: Place) -> None:
    registry = place.open()
    job_id = registry.register(prompt="p", agent="codex").job.job_id
    before = (place.path / ".store" / "index.sqlite").read_bytes()
    registry.publish(job_id, event="progress", data={"text": "x" * 200_000})
    registry.store.close()
    (place.path / ".store" / "index.sqlite").write_bytes(before)
    assert [event["seq"] for event in place.open().store.events(job_id)] == [1]


def seed_fields_only(fields: dict[str, Any]) -> None:
    for name in [name for name in fields if name not in old_record("x")]:
        del fields[name]


def test_the_fence_survives_an_old_script_and_a_lost_index(place: Place) -> None:
    registry = place.open()
    job_id = registry.register(prompt="p", agent="codex").job.job_id
    for attempt in (1, 2):
        registry.pick("codex", owner="early")
        registry.release(job_id, attempt=attempt)
    registry.register(prompt="another", agent="other")
    registry.store.close()
    place.edit(job_id, seed_fields_only)
    lose_index(place)
    registry = place.open()
    claimed = registry.pick("codex", owner="late")
    assert claimed is not None
    assert claimed.attempt == 3
    with pytest.raises(ClaimLost):
        registry.complete(job_id, attempt=1, result="stale")


def test_a_running_job_keeps_its_lease_when_script_and_index_fail_it(place: Place) -> None:
    registry = place.open()
    job_id = registry.register(prompt="p", agent="codex").job.job_id
    claimed = registry.pick("codex", owner="me")
    registry.register(prompt="another", agent="other")
    registry.store.close()
    place.edit(job_id, seed_fields_only)
    lose_index(place)
    job = place.open().get(job_id)
    assert claimed is not None
    assert (job.attempt, job.lease) == (1, claimed.lease)


def lose_index(place: Place) -> None:
    for path in (place.path / ".store").glob("index.sqlite*"):
        path.unlink()


def overwrite_pages(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[8192:] = b"\x5a" * (len(data) - 8192)
    path.write_bytes(data)


def foreign_database(path: Path) -> None:
    path.unlink()
    database = sqlite3.connect(path)
    database.executescript("CREATE TABLE mine (x); PRAGMA user_version = 2;")
    database.close()


def without_an_index(path: Path) -> None:
    database = sqlite3.connect(path)
    database.execute("DROP INDEX claim")
    database.close()


def truncated(path: Path) -> None:
    os.truncate(path, 5000)


@pytest.mark.parametrize("damage", [overwrite_pages, foreign_database, without_an_index, truncated])
def test_a_damaged_index_is_put_aside_and_made_anew(place: Place, damage: Callable[[Path], None]) -> None:
    registry = place.open()
    ids = [registry.register(prompt="p", agent="codex").job.job_id for _ in range(40)]
    registry.pick("codex", owner="me")
    registry.store.close()
    damage(place.path / ".store" / "index.sqlite")
    registry = place.open()
    second = registry.pick("codex", owner="me")
    assert second is not None
    assert second.job_id == ids[1]
    assert registry.complete(ids[0], attempt=1).status is Status.COMPLETED
    assert registry.register(prompt="p", agent="codex").job.number == 41
    check(place, registry)


def test_leases_of_jobs_that_do_not_run_never_stand_in_the_way_of_the_sweep(place: Place) -> None:
    lease = {"expires_at": "2020-01-01T00:00:00.000Z", "seconds": 60}
    for number in range(20):
        place.rename_in(f"copied{number}", old_record(f"copied{number}", lease=lease, agent_session="elsewhere"))
    registry = place.open()
    job_id = registry.register(prompt="p", agent="codex", timeout_sec=10).job.job_id
    registry.pick("codex", owner="me")
    place.clock.advance(11)
    again = registry.pick("codex", owner="me")
    assert again is not None
    assert (again.job_id, again.attempt) == (job_id, 2)
    assert registry.store.due_in() == pytest.approx(10)


def test_a_rotation_under_a_reader_skips_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mam.stores.files.journal.SEGMENT_LIMIT", 4000)
    reader, writer = place.open(), place.open()
    for _ in range(5):
        writer.register(prompt="p", agent="codex")
    entries = reader.store.entries(None)
    read = [next(entries).number]
    for _ in range(6):
        writer.register(prompt="p", agent="codex")
    rest = list(entries)
    read += [entry.number for entry in rest]
    read += [entry.number for entry in reader.store.entries(rest[-1].cursor)]
    assert read == list(range(1, 12))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_record_that_changes_hands_is_named_and_comes_back(place: Place) -> None:
    registry = place.open()
    job_id = registry.register(prompt="p", agent="codex").job.job_id
    os.chown(place.file(job_id), 12345, -1)
    assert list(registry.select(Query())) == []
    assert ["another user" in problem.problem for problem in registry.store.problems()] == [True]
    assert registry.pick("codex", owner="me") is None
    os.chown(place.file(job_id), 0, -1)
    assert [job.job_id for job in registry.select(Query())] == [job_id]
    assert registry.store.problems() == []
    assert registry.pick("codex", owner="me") is not None


def test_a_new_file_that_is_mended_in_place_is_found_when_it_is_touched(place: Place) -> None:
    registry = place.open()
    place.file("abc12345").write_text("{", encoding="utf-8")
    assert list(registry.select(Query())) == []
    place.file("abc12345").write_text(json.dumps(old_record("abc12345")), encoding="utf-8")
    assert registry.get("abc12345").status is Status.PENDING


def test_a_record_that_would_be_too_large_to_read_is_not_written(place: Place) -> None:
    registry = place.open()
    job_id = registry.register(prompt="\x01" * (7 * 2**20), agent="codex").job.job_id
    with pytest.raises(BadInput, match="would have"):
        registry.complete(job_id, result="\x01" * (7 * 2**20))
    assert registry.complete(job_id, result="short").status is Status.COMPLETED


def test_a_journal_that_somebody_cut_is_reported_and_goes_on_whole(place: Place) -> None:
    registry = place.open()
    for _ in range(3):
        registry.register(prompt="p", agent="codex")
    cursor = registry.store.end()
    journal = place.path / ".store" / "journal.log"
    os.truncate(journal, journal.stat().st_size - 50)
    new = registry.register(prompt="p", agent="codex").job
    assert new.number == 4
    assert [entry.number for entry in registry.store.entries(None)] == [1, 2, 4]
    assert [entry.number for entry in registry.store.entries(cursor)] == [4]
    assert [problem.file for problem in registry.store.problems()] == ["journal.log"]
    assert len(list((place.path / ".store" / "quarantine").iterdir())) == 1
    assert len(list(registry.select(Query()))) == 4


def test_secrets_that_nobody_can_read_block_nobody(place: Place) -> None:
    registry = place.open()
    (place.path / ".store").mkdir(exist_ok=True)
    (place.path / ".store" / "secrets").write_text("garbage", encoding="utf-8")
    place.rename_in("abc12345", old_record("abc12345", auth_token="canary"))
    assert registry.pick("tmux:claude", owner="me") is not None
    assert "canary" in (place.path / ".store" / "secrets").read_text(encoding="utf-8")


def test_who_waits_for_two_is_not_stopped_by_the_end_of_one_file(place: Place) -> None:
    registry = place.open()
    gone, stays = (registry.register(prompt="p", agent="codex").job.job_id for _ in range(2))
    place.file(gone).unlink()
    registry.complete(stays)
    seen = []
    with pytest.raises(UnknownJob, match=gone):  # noqa: PT012
        for job in registry.follow([gone, stays]):
            seen.append((job.job_id, job.status))
    assert seen == [(stays, Status.COMPLETED)]


def test_foreign_ends_are_marked_as_such_and_foreign_times_are_understood(place: Place) -> None:
    registry = place.open()
    job_id = registry.register(prompt="p", agent="codex").job.job_id
    place.edit(job_id, lambda fields: fields.update(status="cancelled"))
    assert registry.get(job_id).status is Status.CANCELLED
    lines = [
        line for entry in registry.store.entries(None) for line in entry.lines if line["event"] == "status_changed"
    ]
    assert [(line["by"], line["unfenced"]) for line in lines] == [("foreign", True)]
    place.rename_in("seoul001", old_record("seoul001", created_at="2026-06-19T10:00:00+09:00"))
    place.rename_in("utc00001", old_record("utc00001", created_at="2026-06-19T09:30:00Z"))
    first = registry.pick("tmux:claude", owner="me")
    assert first is not None
    assert (first.job_id, first.created_at) == ("seoul001", "2026-06-19T01:00:00Z")


def test_one_lock_object_keeps_threads_apart(place: Place) -> None:
    lock = registry_lock(str(place.path))
    inside = threading.Semaphore(1)
    crowded = []

    def enter() -> None:
        for _ in range(50):
            with lock:
                if not inside.acquire(blocking=False):
                    crowded.append(True)
                else:
                    inside.release()

    threads = [threading.Thread(target=enter) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert crowded == []


def test_a_fork_while_another_thread_is_inside_works_in_the_child(place: Place) -> None:
    store = FilesStore(str(place.path))
    registry = Registry(store)
    entered, leave = threading.Event(), threading.Event()

    def wait_inside(_book: object) -> bool:
        entered.set()
        return leave.wait(30)

    def stay_inside() -> None:
        store._alone(wait_inside)

    thread = threading.Thread(target=stay_inside)
    thread.start()
    entered.wait()
    child = os.fork()
    if child == 0:
        os._exit(0 if registry.register(prompt="child", agent="codex").created else 1)
    leave.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert registry.register(prompt="parent", agent="codex").job.number == 2
