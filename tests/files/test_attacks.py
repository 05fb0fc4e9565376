"""One file or one process in the wrong state costs one job at most, and never the registry or its fence."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mam.errors import BadInput
from mam.jobs.status import Status
from mam.registry import Registry
from mam.stores.files.adopt import adopt, foreign_ids
from mam.stores.files.lock import registry_lock
from mam.stores.files.store import FilesStore
from mam.stores.port import Query
from tests.files.conftest import StoreDir, old_record
from tests.files.invariants import check, logged

EVIL = "evil0001"


def adopted(registry: Registry) -> list[tuple[str, str]]:
    store = registry.store
    assert isinstance(store, FilesStore)
    return [(one.job_id, one.outcome) for one in adopt(store, foreign_ids(store))]


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
        {"number": 2**63},
        {"losses": -1},
        {"lease": {"expires_at": "2026-06-19T09:30:00.000Z", "boot_id": "b", "boot_ms": 2**70}},
        {"lease": {"expires_at": "2026-06-19T09:30:00.000Z", "seconds": 1e300}},
        {"cost": float("inf")},
    ],
)
def test_an_unstorable_value_is_one_bad_record(store_dir: StoreDir, field: dict[str, Any]) -> None:
    registry = store_dir.open()
    text = json.dumps(old_record(EVIL, **field)).replace("Infinity", "1e400")
    store_dir.file(EVIL).write_text(text, encoding="utf-8")
    good = registry.register(prompt="p", agent="codex").job.job_id
    assert adopted(registry) == [(EVIL, "unreadable")]
    assert [job.job_id for job in registry.select(Query())] == [good]
    assert [problem.file for problem in registry.store.problems()] == [f"{EVIL}.json"]
    assert registry.pick("codex", owner="me") is not None
    assert store_dir.file(EVIL).read_text(encoding="utf-8") == text


LEASE = {"lease": {"expires_at": "2020-01-01T00:00:00.000Z", "seconds": 60}}
DUE = {"due_at": "2020-01-01T00:00:00Z", "waiting_for": "time"}
BEHIND = {"after": ["nothing1"], "waiting_for": "dependency"}
FORGED = {"number": 2**53, "attempt": 7, "claim_id": "forged", "supervised": True}
WRITTEN = {"registry": {"epoch": "x", "version": 9, "digest": "0"}}


@pytest.mark.parametrize(
    ("status", "field"),
    [
        ("running", LEASE), ("pending", LEASE), ("waiting", DUE), ("pending", DUE), ("waiting", BEHIND),
        ("completed", BEHIND), ("pending", {"retry_of": EVIL}), ("running", {"parent_id": EVIL, "depth": 9}),
        ("running", FORGED), ("completed", FORGED), ("pending", WRITTEN), ("completed", WRITTEN),
    ],
)  # fmt: skip
def test_the_registry_survives_any_content_of_a_record(store_dir: StoreDir, field: dict[str, Any], status: str) -> None:
    registry = store_dir.open()
    job_id = registry.register(prompt="p", agent="codex", timeout_sec=10).job.job_id
    store_dir.rename_in(EVIL, old_record(EVIL, status=status, **field))
    assert adopted(registry) == [(EVIL, "new")]
    assert registry.get(EVIL).claim_id != "forged"
    registry.pick("codex", owner="me")
    store_dir.clock.advance(11)
    again = registry.pick("codex", owner="me")
    assert again is not None
    assert (again.job_id, again.attempt) == (job_id, 2)
    assert registry.register(prompt="p", agent="codex").job.number == 3


def a_directory(path: Path) -> None:
    path.mkdir()


def a_link(path: Path) -> None:
    path.symlink_to(path.parent / "elsewhere")


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


ODD = pytest.mark.parametrize("make", [a_directory, a_link, a_pipe])


@ODD
def test_an_invalid_event_log_is_replaced(store_dir: StoreDir, make: Callable[[Path], None]) -> None:
    registry = store_dir.open()
    job_id = registry.register(prompt="p", agent="codex").job.job_id
    make(store_dir.path / f"{job_id}.events.log")
    assert registry.publish(job_id, event="started").last_seq == 1
    assert registry.register(prompt="other", agent="codex").created
    assert registry.complete(job_id).status is Status.COMPLETED
    assert not (store_dir.path / "elsewhere").exists()
    check(store_dir, registry)


@ODD
def test_an_invalid_record_is_moved_aside_and_replaced(store_dir: StoreDir, make: Callable[[Path], None]) -> None:
    registry = store_dir.open()
    job_id = registry.register(prompt="p", agent="codex").job.job_id
    store_dir.file(job_id).unlink()
    make(store_dir.file(job_id))
    assert [problem.file for problem in registry.store.problems()] == [f"{job_id}.json"]
    assert adopted(registry) == [(job_id, "unreadable")]
    assert registry.complete(job_id).status is Status.COMPLETED
    assert not (store_dir.path / "elsewhere").exists()
    assert len(list((store_dir.path / ".store" / "aside").iterdir())) == 1
    check(store_dir, registry)


@ODD
def test_a_foreign_temporary_file_stops_no_act(store_dir: StoreDir, make: Callable[[Path], None]) -> None:
    registry = store_dir.open()
    job_id = registry.register(prompt="p", agent="codex").job.job_id
    make(store_dir.path / f".{job_id}.tmp")
    assert registry.complete(job_id).status is Status.COMPLETED
    assert not (store_dir.path / "elsewhere").exists()
    check(store_dir, registry)


@pytest.mark.parametrize(
    "line", ['{"seq":1,"upto":"x"}\n', '{"seq":1,"upto":null}\n', "[" * 200_000 + "\n", '{"seq":999999}\n', "torn"]
)
def test_odd_lines_in_an_event_log_hide_no_event(store_dir: StoreDir, line: str) -> None:
    registry = store_dir.open()
    job_id = registry.register(prompt="p", agent="codex").job.job_id
    (store_dir.path / f"{job_id}.events.log").write_text(line, encoding="utf-8")
    for _ in range(2):
        registry.publish(job_id, event="progress")
    told = [event["seq"] for event in store_dir.open().store.events(job_id) if event.get("event") == "progress"]
    assert told == [1, 2]


def test_an_event_log_is_written_whole_after_a_power_cut(store_dir: StoreDir) -> None:
    """The record reached the disk and what was appended to the log did not."""
    registry = store_dir.open()
    job_id = registry.register(prompt="p", agent="codex").job.job_id
    for _ in range(3):
        registry.publish(job_id, event="progress")
    registry.store.close()
    log = store_dir.path / f"{job_id}.events.log"
    log.write_bytes(log.read_bytes()[:-50])
    store_dir.clock.restart()
    registry = store_dir.open()
    registry.sweep()
    assert logged(store_dir, job_id) == registry.store.events(job_id)
    check(store_dir, registry)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_record_that_changes_hands_is_reported(store_dir: StoreDir) -> None:
    registry = store_dir.open()
    job_id = registry.register(prompt="p", agent="codex").job.job_id
    os.chown(store_dir.file(job_id), 12345, -1)
    assert ["another user" in problem.problem for problem in registry.store.problems()] == [True]
    assert registry.pick("codex", owner="me") is not None
    check(store_dir, registry)


def test_secrets_that_cannot_be_read_block_no_job(store_dir: StoreDir) -> None:
    registry = store_dir.open()
    (store_dir.path / ".store" / "secrets").write_text("garbage", encoding="utf-8")
    store_dir.rename_in("abc12345", old_record("abc12345", auth_token="canary"))
    assert adopted(registry) == [("abc12345", "new")]
    assert registry.pick("tmux:claude", owner="me") is not None
    assert "canary" in (store_dir.path / ".store" / "secrets").read_text(encoding="utf-8")


def test_a_record_that_would_be_too_large_to_read_is_not_written(store_dir: StoreDir) -> None:
    registry = store_dir.open()
    job_id = registry.register(prompt="\x01" * (7 * 2**20), agent="codex").job.job_id
    with pytest.raises(BadInput, match="would have"):
        registry.complete(job_id, result="\x01" * (7 * 2**20))
    assert registry.complete(job_id, result="short").status is Status.COMPLETED


def test_one_lock_object_keeps_threads_apart(store_dir: StoreDir) -> None:
    lock = registry_lock(str(store_dir.path))
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


def test_a_fork_while_another_thread_is_inside_works_in_the_child(store_dir: StoreDir) -> None:
    store = FilesStore(str(store_dir.path))
    registry = Registry(store)
    entered, leave = threading.Event(), threading.Event()

    def wait_inside() -> bool:
        entered.set()
        return leave.wait(0.3)  # the fork waits for the act to end

    thread = threading.Thread(target=lambda: store._in_transaction(wait_inside))
    thread.start()
    entered.wait()
    child = os.fork()
    if child == 0:
        os._exit(0 if registry.register(prompt="child", agent="codex").created else 1)
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert registry.register(prompt="parent", agent="codex").job.number == 2
