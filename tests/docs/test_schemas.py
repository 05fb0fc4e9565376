"""The schemas describe what mam writes: all of it validates, and invalid documents are rejected."""

from __future__ import annotations

import json
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from referencing import Registry as Schemas
from referencing import Resource

from mam import questions
from mam.audit.log import iter_lines, list_jobs, read_meta
from mam.audit.sync import AuditLog
from mam.errors import ClaimLost
from mam.events.event import EVENTS
from mam.jobs import notices, question_acts
from mam.jobs.edit import Edit
from mam.jobs.question import Draft, Question
from mam.jobs.question_acts import Answer
from mam.jobs.record import Job
from mam.jobs.status import Status
from mam.registry import Registry
from mam.stores.files.adopt import adopt
from mam.stores.files.store import FilesStore, create_files_store
from mam.stores.port import Query
from mam.testing.clock import FakeClock

if TYPE_CHECKING:
    from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "schemas"
NAMES = ("job.schema.json", "question.schema.json", "event.schema.json", "audit_line.schema.json")


@cache
def schema(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / name).read_bytes())
    return found


@cache
def validator(name: str) -> Draft202012Validator:
    schemas: Schemas[Any] = Schemas().with_resources(
        [(other, Resource.from_contents(schema(other))) for other in NAMES]
    )
    return Draft202012Validator(schema(name), registry=schemas)


class World:
    """A store in which everything has happened that can happen to a job, and its audit log."""

    def __init__(self, tmp_path: Path) -> None:
        self.jobs_dir, self.logs_dir = tmp_path / "jobs", tmp_path / "logs"
        self.clock = FakeClock()
        create_files_store(str(self.jobs_dir))
        self.store = FilesStore(str(self.jobs_dir), clock=self.clock)
        self.registry = Registry(self.store, AuditLog(str(self.logs_dir)))
        self._live()
        self._meet_old_records()

    def records(self) -> list[dict[str, Any]]:
        return [json.loads(file.read_bytes()) for file in self.jobs_dir.glob("*.json")]

    def events(self) -> list[dict[str, Any]]:
        jobs = self.registry.select(Query())
        return [event for job in jobs for event in self.store.events(job.job_id) if "marker" not in event]

    def lines(self) -> list[dict[str, Any]]:
        logs_dir = str(self.logs_dir)
        return [line for job_id in list_jobs(logs_dir) for line in iter_lines(logs_dir, job_id)]

    def _live(self) -> None:
        registry = self.registry
        ended = self._claimed("정렬 문제")
        registry.publish(ended, event="started", attempt=1)
        registry.publish(ended, event="permission_required", detail="may I?", data={"tool": "rm"}, attempt=1)
        registry.publish(ended, event="progress", detail="at /home/me/secret/file.txt", data={"status": "half"})
        registry.heartbeat(ended, attempt=1)
        self._ask(ended)
        registry.complete(ended, attempt=1, result="here")
        failed = self._claimed("fails")
        registry.fail(failed, reason="no", attempt=1)
        registry.mark_seen(failed, by="anna@laptop")
        told = partial(notices.note, subject="failure", to="3f9ab2c410de", outcome="failed", why="it answered 503")
        registry.act(failed, "notify", told)
        facts = {"how": "merge", "commit": "c" * 40, "branch": "main", "directory": "/work"}
        registry.mark_applied(failed, by="anna@laptop", facts=facts)
        registry.retry(failed)
        tried = self._claimed("is tried again", label="b")
        registry.fail(tried, reason="not yet", attempt=1, retryable=True)
        called_off = registry.register(prompt="off", agent="b", due_ms=self.clock.now().wall_ms + 10_000).job.job_id
        registry.edit(called_off, Edit(priority=3), by="anna@laptop")
        registry.cancel(called_off)
        registry.next_seq(registry.register(prompt="by hand", agent="c", key="k", priority=7).job.job_id)
        registry.complete(registry.register(prompt="by hand", agent="c").job.job_id)
        lost = self._claimed("lost", label="d")
        self.clock.advance(100_000)
        registry.sweep()
        with pytest.raises(ClaimLost):
            registry.complete(lost, attempt=1)
        registry.pick("d", owner="me")
        registry.register(prompt="later", agent="e", due_ms=self.clock.now().wall_ms + 10_000)
        AuditLog(str(self.logs_dir)).append_local(
            lost, {"timestamp": "2026-01-01T00:00:00Z", "event": "received", "job_id": lost, "payload": {"seq": 1}}
        )

    def _ask(self, job_id: str) -> None:
        """An answered question, one whose deadline passed, and one that the end of the job withdraws."""
        push = Draft(kind="permission", text="git push", tool="Bash", input={"command": "git push"})
        asked = questions.ask(self.registry, job_id, push, attempt=1).question
        given = Answer(number=asked.number, attempt=1, digest=asked.digest, answer="deny", by="me@pc", reason="no")
        questions.answer(self.registry, job_id, given)
        questions.ask(self.registry, job_id, push.replace(deadline_seconds=1.0), attempt=1)
        self.clock.advance(2)
        self.registry.sweep()
        questions.ask(self.registry, job_id, Draft(kind="question", text="Which?", choices=("a", "b")), attempt=1)
        decided = partial(
            question_acts.decide, attempt=1, draft=push, answer="allow", rule="allow Bash", what="git push"
        )
        self.registry.act(job_id, "decide", decided)

    def _claimed(self, prompt: str, label: str = "a") -> str:
        self.registry.register(prompt=prompt, agent="claude-code", label=label, workdir="/tmp")
        job = self.registry.pick(label, owner="me", lease_seconds=60)
        assert job is not None
        return job.job_id

    def _meet_old_records(self) -> None:
        """Records of another program: one as the first version wrote it, one changed by hand, one moved illegally."""
        old = {
            **next(record for record in self.records() if record["status"] == "pending"),
            "job_id": "abc12345", "topic_prefix": "python/mqtt/jobs/abc12345", "last_seq": 4, "mood": "good",
            "key": None, "retry_of": None,
        }  # fmt: skip
        old.pop("registry")
        file = self.jobs_dir / "abc12345.json"
        for change in ({}, {"timeout_sec": 60, "status": "cancelled"}, {"status": "running"}):
            file.write_text(json.dumps({**old, **change}))
            assert [one.job_id for one in adopt(self.store, ["abc12345"])] == ["abc12345"]
            self.registry.catch_up()
        self.registry.sweep()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("world"))


@pytest.mark.parametrize("name", sorted(file.name for file in FOLDER.glob("*.json")))
def test_a_schema_is_itself_valid(name: str) -> None:
    Draft202012Validator.check_schema(schema(name))
    assert schema(name)["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_records_fit(world: World) -> None:
    records = world.records()
    assert {record["status"] for record in records} == {str(status) for status in Status}
    for record in records:
        validator("job.schema.json").validate(record)


def test_snapshots_in_the_audit_log_fit(world: World) -> None:
    job_ids = list_jobs(str(world.logs_dir))
    assert {*job_ids} == {record["job_id"] for record in world.records()}
    for job_id in job_ids:
        validator("job.schema.json").validate(read_meta(str(world.logs_dir), job_id))


def test_events_fit(world: World) -> None:
    events = world.events()
    assert {event["event"] for event in events} == set(EVENTS)
    for event in events:
        validator("event.schema.json").validate(event)


def test_audit_lines_fit(world: World) -> None:
    lines = world.lines()
    named = schema("audit_line.schema.json")["properties"]["event"]["enum"]
    assert {line["event"] for line in lines} == set(named)
    for line in lines:
        validator("audit_line.schema.json").validate(line)


def test_the_seeds_own_record_fits() -> None:
    validator("job.schema.json").validate(
        {
            "schema_version": 1, "job_id": "abc12345", "status": "pending", "created_at": "2026-06-19T09:30:00Z",
            "updated_at": "2026-06-19T09:32:00Z", "prompt": "정렬 문제 10개", "agent": "claude-code",
            "agent_session": "tmux:claude", "topic_prefix": "python/mqtt/jobs/abc12345", "timeout_sec": 3600,
            "broker": {"host": "localhost", "port": 1883, "tls": False, "username": None, "password": None},
            "idle_timeout_sec": 120, "expected_artifacts": ["sort_problems.md"], "last_seq": 0, "auth_token": None,
        }
    )  # fmt: skip


def test_the_record_is_described_field_by_field() -> None:
    assert list(schema("job.schema.json")["properties"]) == [name for name in Job.field_names if name != "unknown"]
    assert list(schema("question.schema.json")["properties"]) == list(Question.field_names)
    assert schema("job.schema.json")["$defs"]["status"]["enum"] == [str(status) for status in Status]
    assert schema("event.schema.json")["properties"]["event"]["enum"] == list(EVENTS)


BROKEN_RECORDS: list[dict[str, Any]] = [
    {"schema_version": 2}, {"job_id": "../x"}, {"status": "banana"}, {"created_at": "yesterday"}, {"prompt": None},
    {"broker": {}}, {"timeout_sec": -1}, {"timeout_sec": "3600"}, {"last_seq": 1.5}, {"expected_artifacts": "a.md"},
    {"lease": {"expires_at": "2026-01-01T00:00:00.000Z"}}, {"lease": {}}, {"due_at": "2026-01-01"}, {"workdir": "here"},
    {"may_ask": 1}, {"questions": {}}, {"questions": [{"number": 1}]},
    {"claim_id": ""}, {"claim_id": "a b"}, {"claim_id": 7},
]  # fmt: skip


@pytest.mark.parametrize("change", BROKEN_RECORDS, ids=str)
def test_a_record_that_is_wrong_does_not_fit(world: World, change: dict[str, Any]) -> None:
    record = next(record for record in world.records() if record["status"] == "completed")
    assert validator("job.schema.json").is_valid(record)
    assert not validator("job.schema.json").is_valid({**record, **change})


def test_a_record_without_a_field_of_the_seed_does_not_fit(world: World) -> None:
    record = world.records()[0]
    assert validator("job.schema.json").is_valid(record)
    for name in schema("job.schema.json")["required"]:
        without = {field: value for field, value in record.items() if field != name}
        assert not validator("job.schema.json").is_valid(without), name


BROKEN_EVENTS: list[dict[str, Any]] = [
    {"schema_version": 2}, {"seq": 0}, {"job_id": ""}, {"event": "done"}, {"timestamp": "2026-01-01T00:00:00"},
    {"detail": "two\nlines"}, {"data": None}, {"data": {}}, {"data": {"status": "running"}}, {"prompt": "never sent"},
    {"data": {"status": "completed", "hmac_sig": "short"}},
]  # fmt: skip


@pytest.mark.parametrize("change", BROKEN_EVENTS, ids=str)
def test_an_event_that_is_wrong_does_not_fit(world: World, change: dict[str, Any]) -> None:
    event = next(event for event in world.events() if event["event"] == "completed")
    assert validator("event.schema.json").is_valid(event)
    assert not validator("event.schema.json").is_valid({**event, **change})


@pytest.mark.parametrize(
    ("event", "change"),
    [
        ("registered", {"status": "banana"}),
        ("registered", {"entry": "7"}),
        ("registered", {"timestamp": None}),
        ("status_changed", {"to": "banana"}),
        ("status_changed", {"unfenced": False}),
        ("published", {"payload": {"seq": 1}}),
        ("reserved", {"seq": 0}),
        ("adopted", {"fields": []}),
        ("refused", {"why": None}),
        ("received", {"entry": "journal:1"}),
        ("received", {"event": "heard"}),
    ],
)
def test_an_audit_line_that_is_wrong_does_not_fit(world: World, event: str, change: dict[str, Any]) -> None:
    line = next(line for line in world.lines() if line["event"] == event)
    assert validator("audit_line.schema.json").is_valid(line)
    assert not validator("audit_line.schema.json").is_valid({**line, **change})
