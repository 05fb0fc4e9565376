"""The record: old records load, unknown fields are preserved, and an error names the wrong field."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mam.errors import BadRecord
from mam.jobs.record import Job, parse_job, split_secrets
from mam.jobs.status import Status
from tests.unit.jobs import in_status

SEED: dict[str, Any] = {
    "schema_version": 1,
    "job_id": "abc12345",
    "status": "pending",
    "created_at": "2026-06-19T09:30:00Z",
    "updated_at": "2026-06-19T09:32:00Z",
    "prompt": "정렬 문제 10개를 만들어 sort_problems.md로 저장…",
    "agent": "claude-code",
    "agent_session": "tmux:claude",
    "broker": {"host": "broker.hivemq.com", "port": 1883, "tls": False, "username": None, "password": None},
    "topic_prefix": "python/mqtt/jobs/abc12345",
    "timeout_sec": 3600,
    "idle_timeout_sec": 120,
    "expected_artifacts": ["sort_problems.md"],
    "last_seq": 0,
    "auth_token": None,
}
"""The example of seeds 000 and 001, with one of its five statuses."""

OWN = {
    "number": 3, "priority": -2, "attempt": 2, "claim_id": "4f0e8a3d", "owner": "worker",
    "claimed_at": "2026-06-19T09:31:00Z",
    "heard_at": "2026-06-19T09:31:30Z", "ended_at": "2026-06-19T09:32:00Z", "ended_attempt": 2, "losses": 1,
    "max_losses": 5, "retries": 1, "max_retries": 4, "waiting_for": None, "due_at": None, "reason": None,
    "result": "done", "checked": True, "key": "nightly", "retry_of": "old", "continues": "first",
    "conversation": {"host": "box"}, "directory_of": "first", "workdir": "/work", "origin_host": "box",
    "lease": {"expires_at": "2026-06-19T09:32:00.500Z", "seconds": 60, "boot_id": "boot-1", "boot_ms": 17},
    "after": ["first"], "on_dependency_failure": "run", "exclusive": "gpu", "parent_id": "mother", "depth": 1,
    "workspace": "worktree", "permissions": "full", "model": "gpt-x", "on_idle": "stop", "retry_on_exit": True,
    "validation": {"script": "check.sh"},
    "claimant": {"agent_id": "gpu", "generation_id": "g-1"},
    "supervised": True, "said": {"status": "completed"}, "checks": {"artifacts": []}, "run": {"exit_code": 0},
    "applied": {"by": "me"}, "seen": {"by": "anna@laptop", "at": "2026-06-19T09:33:00Z"},
    "repository": {"name": "acme/shop", "branch": "main"}, "inbox": {"root": "/prompts", "file": "a/b/c/x.prompt.md"},
    "may_ask": False, "questions": [{
        "number": 1, "attempt": 2, "kind": "permission", "text": "push?", "tool": "Bash", "input": {"command": "git"},
        "digest": "0" * 64, "asked_at": "2026-06-19T09:31:00Z", "state": "answered", "answer": "deny",
        "deadline": {"expires_at": "2026-06-19T09:32:00.500Z", "seconds": 60, "boot_id": "b", "boot_ms": 1},
    }],
    "registered_by": "phone",
}  # fmt: skip


@pytest.mark.parametrize("status", ["pending", "running", "completed", "error", "cancelled"])
def test_a_record_of_the_seed_loads_and_keeps_every_field(status: str) -> None:
    job = parse_job({**SEED, "status": status}, "abc12345.json")

    assert {name: value for name, value in job.to_json().items() if name in SEED} == {**SEED, "status": status}
    assert (job.attempt, job.losses, job.max_losses, job.lease, job.unknown) == (0, 0, 3, None, {})


def test_the_fields_of_the_seed_come_first_and_in_its_order() -> None:
    assert list(parse_job(SEED, "x").to_json())[: len(SEED)] == list(SEED)


@pytest.mark.parametrize("status", list(Status))
def test_a_record_is_read_as_it_was_written(status: Status) -> None:
    job = in_status(status)

    assert parse_job(json.loads(json.dumps(job.to_json())), "x") == job
    full = parse_job({**SEED, **OWN}, "x")
    assert full.to_json() == {**SEED, **OWN}


def test_the_least_that_a_record_needs() -> None:
    job = parse_job({name: SEED[name] for name in ("job_id", "status", "created_at", "prompt")}, "x")

    assert (job.agent, job.agent_session, job.updated_at) == ("unknown", "unknown", SEED["created_at"])
    assert (job.timeout_sec, job.idle_timeout_sec, job.topic_prefix) == (3600, 120, "python/mqtt/jobs/abc12345")


def test_null_in_an_old_record_means_the_default() -> None:
    nothing = dict.fromkeys(("updated_at", "agent_session", "broker", "topic_prefix", "expected_artifacts"))

    job = parse_job({**SEED, **nothing}, "x")

    assert (job.agent_session, job.expected_artifacts) == ("claude-code", [])
    assert job.broker["host"] is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text(min_size=1).filter(lambda name: name not in Job.field_names), JSON, max_size=4))
def test_fields_that_mam_does_not_know_survive(extra: dict[str, Any]) -> None:
    job = parse_job({**SEED, **extra}, "x")

    assert job.unknown == extra
    assert job.replace(status=Status.CANCELLED).to_json() == {**job.to_json(), "status": "cancelled"}
    assert {name: job.to_json()[name] for name in extra} == extra


@pytest.mark.parametrize("name", ["job_id", "status", "created_at", "prompt"])
def test_a_missing_field_is_named(name: str) -> None:
    _is_bad({key: value for key, value in SEED.items() if key != name}, name)


WRONG_TYPES: dict[type, list[Any]] = {
    str: [1, 1.5, True, [], {}],
    int: ["1", 1.5, True, [], {}, None],
    dict: ["x", 1, True, ["x"]],
    list: ["x", 1, True, {"x": 1}],
    bool: ["x", 1, 0],
}


def _wrong_values() -> list[tuple[str, Any]]:
    known: dict[str, Any] = {
        **SEED,
        **OWN,
        "waiting_for": "retry",
        "due_at": "2026-06-19T09:32:00Z",
        "reason": "no luck",
    }
    wrong = [(name, value) for name, right in known.items() for value in WRONG_TYPES.get(type(right), [])]
    wrong.remove(("ended_attempt", None))
    wrong += [("auth_token", value) for value in WRONG_TYPES[str]]
    assert len({name for name, _value in wrong}) > 50, "the table no longer covers the fields"
    return wrong


def test_a_wrong_type_is_named() -> None:
    for name, value in _wrong_values():
        _is_bad({**SEED, **OWN, name: value}, name)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, "../x") for name in ("job_id", "status", "created_at", "updated_at", "due_at", "heard_at")),
        *((name, "2026-01-01T00:00:00") for name in ("created_at", "updated_at", "claimed_at", "ended_at", "due_at")),
        *((name, -1) for name in ("timeout_sec", "idle_timeout_sec", "last_seq", "number", "attempt")),
        ("losses", -1), ("retries", -1), ("job_id", ""), ("job_id", "a" * 65), ("job_id", "a\0"), ("job_id", "-x"),
        ("status", "stalled"), ("status", ""),
        ("status", "Pending"), ("expected_artifacts", [1]), ("expected_artifacts", ["a", None]),
        ("claim_id", ""), ("claim_id", "a b"), ("claim_id", "x" * 65), ("claim_id", 7),
        ("claimant", {}), ("claimant", {"agent_id": "gpu"}), ("claimant", {"agent_id": "gpu", "generation_id": 1}),
        ("claimant", {"agent_id": "../x", "generation_id": "g"}), ("claimant", {"agent_id": "", "generation_id": "g"}),
        ("lease", {}), ("lease", {"expires_at": "soon"}), ("lease", {"expires_at": 7}),
        ("lease", {"expires_at": "2026-06-19T09:32:00Z", "boot_ms": "x", "boot_id": "b"}),
        ("lease", {"expires_at": "2026-06-19T09:32:00Z", "seconds": "long"}),
        ("lease", {"expires_at": "2026-06-19T09:32:00Z", "boot_id": 7}),
    ],
)  # fmt: skip
def test_a_wrong_value_is_named(name: str, value: object) -> None:
    _is_bad({**SEED, **OWN, name: value}, name)


@pytest.mark.parametrize("fields", [None, [], "x", 1, True])
def test_a_record_must_be_an_object(fields: object) -> None:
    _is_bad(fields, "not a JSON object")


def test_a_newer_record_is_left_to_a_newer_mam() -> None:
    _is_bad({**SEED, "schema_version": 2, "status": "sleeping"}, "schema_version 2 is newer")


@pytest.mark.parametrize("version", [0, -1, "1", None, True])
def test_a_version_that_never_was_is_bad(version: object) -> None:
    _is_bad({**SEED, "schema_version": version}, "schema_version")


def test_secrets_are_split_off_and_the_fields_become_null() -> None:
    inline = {**SEED, "auth_token": "t0ken", "broker": {**SEED["broker"], "password": "hunter2"}, "x": 1}

    fields, secrets = split_secrets(inline)

    assert fields == {**SEED, "x": 1}
    assert secrets == {"auth_token": "t0ken", "broker_password": "hunter2"}
    assert inline["auth_token"] == "t0ken", "what was given is not changed"
    assert "hunter2" not in str(parse_job(fields, "x"))


@pytest.mark.parametrize("fields", [SEED, {}, {"broker": None}, {"broker": "x"}, {"auth_token": None}])
def test_without_secrets_there_is_nothing_to_split(fields: dict[str, Any]) -> None:
    assert split_secrets(fields) == (fields, {})


def test_an_inline_secret_never_enters_a_job() -> None:
    _is_bad({**SEED, "auth_token": "t0ken"}, "auth_token")


def _is_bad(fields: object, problem: str) -> None:
    with pytest.raises(BadRecord) as refused:
        pytest.fail(f"{problem}: this was taken: {parse_job(fields, 'somewhere/abc12345.json')}")
    assert str(refused.value).startswith("somewhere/abc12345.json: ")
    assert problem in str(refused.value)
    assert "t0ken" not in str(refused.value)
