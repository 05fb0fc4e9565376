"""Killed at any step, cut in the middle of a line, without power: the log is caught up, and no line is there twice."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING

import pytest

from mam.audit import cursor
from mam.audit.sync import AuditLog
from mam.registry import Registry
from tests.audit.support import (
    Memory,
    events_of,
    files_registry,
    history_in,
    history_in_log,
    history_lines,
    raw_lines,
    status_json,
)
from tests.faults.killing import at_calls, kill_points

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ACTS: dict[str, Callable[[Registry], object]] = {
    "register": lambda registry: registry.register(prompt="new", agent="a"),
    "pick": lambda registry: registry.pick("a", owner="me"),
    "complete": lambda registry: registry.complete("old"),
    "several": lambda registry: [registry.pick("a", owner="me"), registry.complete("old"), registry.retry("old")],
}


def write_half(descriptor: int, data: bytes) -> int:
    """What a full disk or a killed writer leaves; as two steps, so that one can be killed between them."""
    return counted_write(descriptor, data[: (len(data) + 1) // 2])


def counted_write(descriptor: int, data: bytes) -> int:
    raise NotImplementedError  # replaced by os.write as the killer has wrapped it


@pytest.mark.parametrize("writes", ["whole", "halved"])
@pytest.mark.parametrize("act", ACTS)
def test_killed_before_any_step(tmp_path: Path, act: str, writes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    logs_dir, origin = tmp_path / "logs", tmp_path / "origin"
    store = Memory()
    Registry(store, AuditLog(str(origin))).register(prompt="p", agent="a", job_id="old")
    ACTS[act](Registry(store))
    shutil.copytree(origin, logs_dir)

    def work(_acknowledge: Callable[[str], None]) -> None:
        if writes == "halved":
            monkeypatch.setitem(globals(), "counted_write", os.write)
            monkeypatch.setattr(os, "write", write_half)
        AuditLog(str(logs_dir)).follow(store)

    steps = 0
    for _step, _acknowledged in kill_points(at_calls, work):
        steps += 1
        AuditLog(str(logs_dir)).follow(store)
        assert history_in_log(logs_dir) == history_in(store), f"killed before step {steps}"
        for job_id in history_in(store):
            assert status_json(logs_dir, job_id)["status"] == store.get(job_id).status
            assert json.loads((logs_dir / job_id / "meta.json").read_bytes())["prompt"]
        shutil.rmtree(logs_dir)
        shutil.copytree(origin, logs_dir)
    assert steps > 10


def test_a_torn_last_line_is_closed_and_kept(registry: Registry, logs_dir: Path) -> None:
    job = registry.register(prompt="p", agent="a").job
    with (logs_dir / job.job_id / "events.ndjson").open("ab") as file:
        file.write(b'{"timestamp": "2026-01-01T00:00:00Z", "eve')
    registry.pick("a", owner="me")
    assert raw_lines(logs_dir, job.job_id)[1] == b'{"timestamp": "2026-01-01T00:00:00Z", "eve\n'
    assert events_of(logs_dir, job.job_id) == ["registered", "status_changed"]


@pytest.mark.parametrize("kept", [0, 1, 20, -2, -1])
def test_an_entry_cut_off_at_any_byte_is_printed_once(
    registry: Registry, logs_dir: Path, store: Memory, kept: int
) -> None:
    """Killed in the middle of the last line, or just before its newline; the cursor knows nothing of it."""
    job = registry.register(prompt="p", agent="a").job
    before = (logs_dir / ".cursor-journal-a").read_bytes()
    registry.pick("a", owner="me")
    file = logs_dir / job.job_id / "events.ndjson"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(lines[0] + lines[1][:kept])
    (logs_dir / ".cursor-journal-a").write_bytes(before)
    AuditLog(str(logs_dir)).follow(store)
    assert events_of(logs_dir, job.job_id) == ["registered", "status_changed"]


@pytest.mark.parametrize("damage", [b"", b"nonsense\n", b'00000000 {"place": "7", "number": 7}\n', b"\0" * 200])
def test_a_damaged_position_restarts_without_repeats(
    registry: Registry, logs_dir: Path, store: Memory, damage: bytes
) -> None:
    job = registry.register(prompt="p", agent="a").job
    registry.pick("a", owner="me")
    (logs_dir / ".cursor-journal-a").write_bytes(damage)
    registry.complete(job.job_id, attempt=1)
    assert history_in_log(logs_dir) == history_in(store)


def test_a_removed_log_is_rebuilt_from_the_journal(registry: Registry, logs_dir: Path, store: Memory) -> None:
    job = registry.register(prompt="p", agent="a").job
    shutil.rmtree(logs_dir)
    registry.pick("a", owner="me")
    assert history_in_log(logs_dir) == history_in(store)
    assert (logs_dir / job.job_id / "meta.json").exists()


def test_after_a_power_cut_lines_that_were_lost_come_back(
    registry: Registry, logs_dir: Path, store: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk kept the cursor and lost the last lines; the machine has booted anew."""
    monkeypatch.setattr(cursor, "SETTLED_SECONDS", 0.0)
    jobs = [registry.register(prompt="p", agent="a").job.job_id for _ in range(6)]
    monkeypatch.setattr(cursor, "SETTLED_SECONDS", 3600.0)
    registry.pick("a", owner="me")
    file = logs_dir / jobs[0] / "events.ndjson"
    file.write_bytes(raw_lines(logs_dir, jobs[0])[0])
    (logs_dir / jobs[5] / "meta.json").write_bytes(b"")
    (logs_dir / jobs[5] / "events.ndjson").write_bytes(b"\0" * 50)
    monkeypatch.setattr(cursor, "boot_id", lambda: "another-boot")
    registry.cancel(jobs[1])
    assert history_in_log(logs_dir) == history_in(store)
    assert json.loads((logs_dir / jobs[5] / "meta.json").read_bytes())["job_id"] == jobs[5]


def test_after_a_power_cut_a_line_lost_from_the_middle_comes_back_alone(
    registry: Registry, logs_dir: Path, store: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk kept a later page of the history and lost an earlier one."""
    job = registry.register(prompt="p", agent="a").job.job_id
    for detail in ("1", "2", "3"):
        registry.publish(job, event="progress", detail=detail)
    lines = raw_lines(logs_dir, job)
    lines[1] = b"\0" * (len(lines[1]) - 1) + b"\n"
    (logs_dir / job / "events.ndjson").write_bytes(b"".join(lines))
    monkeypatch.setattr(cursor, "boot_id", lambda: "another-boot")
    registry.publish(job, event="progress", detail="4")
    told = [line["payload"]["detail"] for line in history_lines(logs_dir, job) if line["event"] == "published"]
    assert told == ["2", "3", "1", "4"]


def test_after_a_power_cut_only_what_may_be_missing_is_read_again(
    registry: Registry, logs_dir: Path, store: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cursor, "SETTLED_SECONDS", 0.0)
    for _ in range(10):
        registry.register(prompt="p", agent="a")
    monkeypatch.setattr(cursor, "boot_id", lambda: "another-boot")
    assert cursor.CursorRead(str(logs_dir), "journal-a").at.number == 8


def test_a_full_disk_leaves_a_torn_line_and_loses_nothing(tmp_path: Path, logs_dir: Path) -> None:
    """A limit on the size of files cuts a write short and refuses the rest, as a disk does that fills up."""
    import resource

    registry = files_registry(tmp_path / "jobs", logs_dir)
    job = registry.register(prompt="p", agent="a").job
    file = logs_dir / job.job_id / "events.ndjson"
    Registry(registry.store).publish(job.job_id, event="progress", detail="x" * 1000)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size + 100, hard))
    try:
        AuditLog(str(logs_dir)).follow(registry.store)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not file.read_bytes().endswith(b"\n")
    assert events_of(logs_dir, job.job_id) == ["registered"]
    registry.pick("a", owner="me")
    assert history_in_log(logs_dir) == history_in(registry.store)
    assert len(raw_lines(logs_dir, job.job_id)) == len(history_lines(logs_dir, job.job_id)) + 1
    registry.store.close()
