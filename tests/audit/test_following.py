"""What the audit log holds after each act."""

from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING

import pytest

from mam.audit import fetch
from mam.audit.log import list_jobs, read_meta, read_status
from mam.audit.sync import AuditLog
from mam.errors import ClaimLost
from mam.registry import Registry
from tests.audit.support import (
    Memory,
    adopt_files,
    events_of,
    files_registry,
    history_in,
    history_in_log,
    history_lines,
    raw_lines,
    status_json,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_the_events_of_a_job_are_printed_in_order(registry: Registry, logs_dir: Path) -> None:
    job = registry.register(prompt="정렬 문제 10개", agent="claude-code", label="tmux:claude").job
    registry.pick("tmux:claude", owner="me")
    registry.publish(job.job_id, event="progress", detail="half", attempt=1)
    registry.complete(job.job_id, attempt=1, result="done")
    lines = history_lines(logs_dir, job.job_id)
    assert [line["event"] for line in lines] == [
        "registered", "status_changed", "published", "status_changed", "published"
    ]  # fmt: skip
    assert [(line["from"], line["to"]) for line in lines if line["event"] == "status_changed"] == [
        ("pending", "running"),
        ("running", "completed"),
    ]
    assert lines[2]["payload"]["seq"] == 1
    assert lines[4]["payload"] == registry.store.events(job.job_id)[1]
    assert all(line["job_id"] == job.job_id for line in lines)


def test_every_line_names_its_entry_and_its_place_in_it(registry: Registry, logs_dir: Path) -> None:
    job = registry.register(prompt="p", agent="a").job
    registry.complete(job.job_id)
    assert [line["entry"] for line in history_lines(logs_dir, job.job_id)] == [
        "journal-a:1", "journal-a:2", "journal-a:2.1", "journal-a:2.2"
    ]  # fmt: skip


def test_meta_is_the_record_at_registration_and_stays_that(registry: Registry, logs_dir: Path) -> None:
    job = registry.register(prompt="정렬\n문제", agent="codex", artifacts=["a.md"]).job
    before = (logs_dir / job.job_id / "meta.json").read_bytes()
    registry.pick("codex", owner="me")
    assert (logs_dir / job.job_id / "meta.json").read_bytes() == before
    assert read_meta(str(logs_dir), job.job_id) == json.loads(json.dumps(job.to_json()))
    assert "정렬".encode() in before


def test_status_is_the_status_now(registry: Registry, logs_dir: Path) -> None:
    job = registry.register(prompt="p", agent="a").job
    assert status_json(logs_dir, job.job_id) == {
        "job_id": job.job_id,
        "status": "pending",
        "updated_at": job.created_at,
    }
    registry.pick("a", owner="me")
    assert read_status(str(logs_dir), job.job_id) == "running"
    registry.fail(job.job_id, reason="no", attempt=1)
    assert read_status(str(logs_dir), job.job_id) == "error"


def test_heartbeats_leave_no_line(registry: Registry, logs_dir: Path) -> None:
    job = registry.register(prompt="p", agent="a").job
    registry.pick("a", owner="me")
    for _ in range(fetch.FEW * 3):
        registry.heartbeat(job.job_id, attempt=1)
    registry.release(job.job_id, attempt=1)
    assert events_of(logs_dir, job.job_id) == ["registered", "status_changed", "status_changed"]


def test_a_refused_write_leaves_a_line_behind_what_came_before_it(registry: Registry, logs_dir: Path) -> None:
    job = registry.register(prompt="p", agent="a").job
    registry.pick("a", owner="me")
    registry.cancel(job.job_id)
    with pytest.raises(ClaimLost):
        registry.complete(job.job_id, attempt=1)
    last = history_lines(logs_dir, job.job_id)[-1]
    assert last["event"] == "refused"
    assert last["verb"] == "complete"
    assert "cancelled" in last["why"]
    assert "entry" not in last


def test_lines_of_the_wire_do_not_hide_where_the_copy_ends(registry: Registry, logs_dir: Path, store: Memory) -> None:
    """More local lines than one look back takes, and then the cursor is lost."""
    job = registry.register(prompt="p", agent="a").job
    log = AuditLog(str(logs_dir))
    for seq in range(200):
        log.append_local(job.job_id, {"event": "received", "payload": {"seq": seq, "detail": "x" * 400}})
    (logs_dir / ".cursor-journal-a").unlink()
    log.follow(store)
    assert events_of(logs_dir, job.job_id).count("registered") == 1


def test_a_local_line_cannot_pass_for_a_copied_one(registry: Registry, logs_dir: Path, store: Memory) -> None:
    job = registry.register(prompt="p", agent="a").job
    log = AuditLog(str(logs_dir))
    log.append_local(job.job_id, {"event": "received", "entry": "journal-a:99"})
    log.append_local(job.job_id, {"event": "received", "payload": {"data": {"entry": "journal-a:99"}}})
    registry.pick("a", owner="me")
    assert events_of(logs_dir, job.job_id) == ["registered", "received", "received", "status_changed"]


def test_text_that_is_not_utf8_does_not_stop_the_log(registry: Registry, logs_dir: Path) -> None:
    """What came over the wire is kept as it was."""
    job = registry.register(prompt="p", agent="a").job
    AuditLog(str(logs_dir)).append_local(job.job_id, {"event": "received", "payload": "\ud800"})
    assert history_lines(logs_dir, job.job_id)[-1]["payload"] == "\ud800"
    registry.cancel(job.job_id)
    assert read_status(str(logs_dir), job.job_id) == "cancelled"


def test_two_stores_share_a_log(logs_dir: Path) -> None:
    log = AuditLog(str(logs_dir))
    first, second = Memory("journal-a"), Memory("journal-b")
    one = Registry(first, log).register(prompt="p", agent="a").job
    two = Registry(second, log).register(prompt="p", agent="a").job
    Registry(first, log).cancel(one.job_id)
    Registry(second, log).cancel(two.job_id)
    assert history_in_log(logs_dir) == {**history_in(first), **history_in(second)}
    assert read_status(str(logs_dir), one.job_id) == read_status(str(logs_dir), two.job_id) == "cancelled"


def test_one_job_in_two_journals_keeps_both_histories(logs_dir: Path) -> None:
    """A registry made anew from old files has another journal and the same jobs."""
    log = AuditLog(str(logs_dir))
    for name in ("journal-a", "journal-b"):
        registry = Registry(Memory(name), log)
        registry.register(prompt=name, agent="a", job_id="same")
        registry.cancel("same")
    entries = [line["entry"] for line in history_lines(logs_dir, "same")]
    assert [entry.partition(":")[0] for entry in entries] == ["journal-a"] * 3 + ["journal-b"] * 3
    meta = read_meta(str(logs_dir), "same")
    assert meta is not None
    assert meta["prompt"] == "journal-a"


def test_a_long_backlog_is_copied_in_bounded_steps(
    logs_dir: Path, store: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "ENTRIES_AT_ONCE", 10)
    bare = Registry(store)
    for _ in range(25):
        bare.register(prompt="p", agent="a")
    log = AuditLog(str(logs_dir))
    sizes = []
    for _ in range(3):
        log.follow(store)
        sizes.append(len(list_jobs(str(logs_dir))))
    assert sizes == [10, 20, 25]


def test_catching_up_copies_all_of_it(logs_dir: Path, store: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "ENTRIES_AT_ONCE", 10)
    monkeypatch.setattr(fetch, "TEXT_AT_ONCE", 2)
    bare = Registry(store)
    for _ in range(25):
        bare.register(prompt="prompt", agent="a")
    AuditLog(str(logs_dir)).catch_up(store)
    assert history_in_log(logs_dir) == history_in(store)


def test_files_and_directories_are_private(registry: Registry, logs_dir: Path) -> None:
    registry.register(prompt="p", agent="a")
    for path in (logs_dir, *logs_dir.rglob("*")):
        wanted = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == wanted, path


def test_each_record_is_one_line(registry: Registry, logs_dir: Path) -> None:
    job = registry.register(prompt="p", agent="a").job
    registry.publish(job.job_id, event="progress", detail="one\ntwo", data={"text": "three\nfour\u2028five"})
    registry.cancel(job.job_id, reason="six\nseven")
    for line in raw_lines(logs_dir, job.job_id):
        assert isinstance(json.loads(line), dict)


def test_a_record_that_came_as_a_file_has_its_whole_record_in_meta(tmp_path: Path, logs_dir: Path) -> None:
    registry = files_registry(tmp_path / "jobs", logs_dir)
    old = {
        "schema_version": 1, "job_id": "abc12345", "status": "pending", "created_at": "2026-06-19T09:30:00Z",
        "updated_at": "2026-06-19T09:32:00Z", "prompt": "정렬", "agent": "claude-code", "agent_session": "tmux:claude",
    }  # fmt: skip
    (tmp_path / "jobs" / "abc12345.json").write_text(json.dumps(old), encoding="utf-8")
    adopt_files(registry.store)
    assert registry.get("abc12345").number == 1
    registry.pick("tmux:claude", owner="me")
    meta = read_meta(str(logs_dir), "abc12345")
    assert meta is not None
    assert {name: meta[name] for name in ("prompt", "created_at", "agent_session")} == {
        "prompt": "정렬",
        "created_at": "2026-06-19T09:30:00Z",
        "agent_session": "tmux:claude",
    }
    assert events_of(logs_dir, "abc12345") == ["registered", "status_changed"]
    assert read_status(str(logs_dir), "abc12345") == "running"
