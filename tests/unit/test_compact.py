"""What a database leaves out of records and lines comes back as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mam.events.event import event_payload
from mam.jobs.draft import draft_job
from mam.jobs.record import Job, parse_job
from mam.stores.sql.compact import (
    entry_fields,
    short_lines,
    short_record,
    whole_lines,
    whole_record,
)

NOON = "2026-01-01T12:00:00Z"

JOBS: dict[str, dict[str, Any]] = {
    "usual": {},
    "every default turned off": {
        "timeout_sec": 0, "idle_timeout_sec": 0, "max_losses": 0, "max_retries": 0, "may_ask": False,
        "permissions": "full", "on_idle": "stop", "workspace": "fresh", "on_dependency_failure": "run",
    },
    "a broker and a topic": {"broker": {"host": "h", "port": 1, "tls": True, "username": None, "password": None},
                             "topic_prefix": "a/b"},
    "lists": {"expected_artifacts": ["a.md"], "after": ["b"]},
    "fields of another program": {"unknown": {"x_team": None, "x_empty": []}},
}  # fmt: skip


def made(name: str) -> Job:
    job = draft_job(job_id="abc12345", prompt="p", agent="codex")
    return job.replace(**{"created_at": NOON, "updated_at": NOON, **JOBS[name]})


@pytest.mark.parametrize("name", JOBS)
def test_an_entry_and_an_short_record_come_back(name: str) -> None:
    job = made(name)
    stored = json.loads(json.dumps(short_record(job)))
    assert entry_fields(stored) == job.to_json()
    assert parse_job(whole_record(json.loads(json.dumps(short_record(job)))), "x") == job


def test_full_entries_of_an_earlier_version_are_read_unchanged() -> None:
    whole = {"schema_version": 1, "job_id": "a", "created_at": NOON, "auth_token": None}
    assert entry_fields(whole) == whole
    assert entry_fields({"status": "running"}) == {"status": "running"}
    lines = [{"event": "registered", "job_id": "a"}]
    assert whole_lines(lines, "a") == lines


def test_the_fields_of_two_entries_are_not_one_list() -> None:
    stored = short_record(made("usual"))
    first = entry_fields(stored)
    first["after"].append("b")
    first["broker"]["host"] = "h"
    assert entry_fields(stored) == made("usual").to_json()


def test_lines_come_back_as_they_were_written() -> None:
    usual = event_payload(1, "abc", "started", NOON, "attempt 1", {"a": 1})
    lines: list[dict[str, Any]] = [
        {"timestamp": NOON, "event": "registered", "job_id": "abc"},
        {"timestamp": NOON, "event": "published", "job_id": "abc", "payload": usual},
    ]
    stored = short_lines(lines)
    assert json.dumps(stored).count("abc") == 0
    assert stored[1]["payload"] == {"seq": 1, "event": "started", "detail": "attempt 1", "data": {"a": 1}}
    assert json.dumps(short_lines(stored)) == json.dumps(stored), "a summary is summarised again"
    assert json.dumps(whole_lines(stored, "abc")) == json.dumps(lines)


@pytest.mark.parametrize(
    "change", [{"job_id": "imported"}, {"timestamp": "later"}, {"schema_version": 2}, {"more": 1}, {"data": None}]
)
def test_an_event_that_differs_from_its_line_is_kept_as_it_is(change: dict[str, Any]) -> None:
    payload = {**event_payload(1, "abc", "started", NOON, "attempt 1"), **change}
    for odd in (payload, dict(reversed(payload.items())), {"seq": 2, "job_id": "abc"}, {}):
        lines: list[dict[str, Any]] = [{"timestamp": NOON, "event": "published", "job_id": "abc", "payload": odd}]
        assert json.dumps(whole_lines(short_lines(lines), "abc")) == json.dumps(lines)


def test_events_that_lack_only_the_id_are_read() -> None:
    payload = event_payload(1, "abc", "started", NOON, "attempt 1")
    line: dict[str, Any] = {"timestamp": NOON, "event": "published", "job_id": 0, "payload": {**payload, "job_id": 0}}
    assert json.dumps(whole_lines([line], "abc")) == json.dumps([{**line, "job_id": "abc", "payload": payload}])


def test_the_values_that_are_left_out_never_change() -> None:
    """Archives that exist were written with them."""
    assert {name: value for name, value in whole_record({"job_id": "a"}).items() if value} == {
        "job_id": "a", "topic_prefix": "python/mqtt/jobs/a",
        "broker": {"host": None, "port": 1883, "tls": False, "username": None, "password": None},
        "schema_version": 1, "timeout_sec": 3600, "idle_timeout_sec": 120, "max_losses": 3, "max_retries": 3,
        "on_dependency_failure": "hold", "workspace": "workdir", "permissions": "edit", "on_idle": "show",
        "may_ask": True,
    }  # fmt: skip
