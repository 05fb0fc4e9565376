"""The record of a job: schema_version 1, with the fields of the seed and the fields that mam adds.

Fields that mam adds are optional on read, and unknown fields are preserved: old records load, and newer writers do not
lose their fields. Secrets (`auth_token`, the broker's password) never enter a `Job`; `split_secrets` removes them.
"""

from __future__ import annotations

from mam.errors import BadRecord
from mam.events.topic import default_prefix
from mam.jobs.input_rules import is_claim_id, is_job_id, is_session_id
from mam.jobs.lease import Lease
from mam.jobs.status import Status
from mam.util.clock import parse_time
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

SCHEMA_VERSION = 1
DEPENDENCY = "dependency"
"""The value of `waiting_for` for a job with open dependencies."""
CLAIMANT = ("agent_id", "generation_id")
NO_BROKER = {"host": None, "port": 1883, "tls": False, "username": None, "password": None}


class Job(Frozen, freezes_json=True):
    """One delegated task. The field names are those in the record file. Its JSON is frozen too: a worker that continues
    to fill its own `run` does not change a record that a store has."""

    schema_version: int = SCHEMA_VERSION
    job_id: str
    status: Status
    created_at: str
    updated_at: str
    prompt: str
    agent: str
    agent_session: str
    broker: Json
    topic_prefix: str
    timeout_sec: int = 3600
    idle_timeout_sec: int = 120
    expected_artifacts: list[str]
    last_seq: int = 0
    auth_token: None = None

    number: int = 0
    """The number that the store assigns; it alone decides which job is older."""
    priority: int = 0
    attempt: int = 0
    """Counts claims, and fences writes: a write of an earlier attempt is refused."""
    claim_id: str | None = None
    """The random id of the latest claim. It also fences a write that gives it, because a server that was restored to an
    earlier state can assign an attempt twice."""
    owner: str | None = None
    lease: Lease | None = None
    claimant: Json | None = None
    """The session that holds the claim, if the claim named one: `agent_id` and `generation_id`."""
    claimed_at: str | None = None
    heard_at: str | None = None
    """When its holder last gave a sign of life; mam computes from it whether the job is quiet."""
    ended_at: str | None = None
    ended_attempt: int | None = None
    """The attempt that ended the job; only a repeat of its write is a no-op."""
    losses: int = 0
    max_losses: int = 3
    retries: int = 0
    max_retries: int = 3
    waiting_for: str | None = None
    due_at: str | None = None
    reason: str | None = None
    result: str | None = None
    checked: bool | None = None
    """Whether mam verified anything before completion; None until then."""
    key: str | None = None
    retry_of: str | None = None
    continues: str | None = None
    """The job whose conversation it continues; each job has at most one continuation."""
    conversation: Json | None = None
    """The conversation that it continues, as soon as it is known (mam.jobs.continuation)."""
    directory_of: str | None = None
    """The job whose workspace it works in: the first of its chain; None for its own."""
    workdir: str | None = None
    origin_host: str | None = None

    after: list[str] = []  # noqa: RUF012 - frozen
    """The ids of its dependencies; a retry replaces the job that it retries."""
    on_dependency_failure: str = "hold"
    exclusive: str | None = None
    """At most one job with this key runs at a time."""
    parent_id: str | None = None
    """The job that registered this one."""
    depth: int = 0
    workspace: str = "workdir"
    """Where it runs: in its `workdir`, in a `fresh` directory, or in a git `worktree` of its own."""
    permissions: str = "edit"
    model: str | None = None
    """The model that the agent is to use; its own default if None."""
    on_idle: str = "show"
    retry_on_exit: bool = False
    """Whether an exit code other than 0 is a failure that is retried."""
    validation: Json | None = None
    """A script that validates the outcome, with the hash of its trusted content."""
    supervised: bool = False
    """Whether a worker holds the claim and verifies the outcome."""
    said: Json | None = None
    """The outcome that the agent reported while a worker held the claim; not verified."""
    checks: Json | None = None
    """What the worker verified, and the results."""
    run: Json | None = None
    """The process of the latest attempt: how it ended, and its usage."""
    seen: Json | None = None
    """Who looked at the outcome last (`by`), and when (`at`)."""
    applied: Json | None = None
    """Who applied its changes last (`by`), when (`at`), how, and where."""
    repository: Json | None = None
    """The repository to work on: `name` (owner/repo, which the worker's settings map to an address), the `branch` to
    start from, and whether to `push` the outcome or open a `pull_request`."""
    inbox: Json | None = None
    """The prompt file that it comes from: `root`, `file` (relative to the inbox), `owner`, `repo`, `branch`, and a
    `remark` about its head."""
    may_ask: bool = True
    """Whether its agent may ask a person; decided at registration."""
    questions: list[Json] = []  # noqa: RUF012
    """What it asked (mam.jobs.question): the open questions and the latest others."""
    registered_by: str | None = None
    """The token that registered it, as NAME.DIGITS of its digest; None if it did not come over the network."""
    unknown: Json
    """Fields of the record that this version does not know."""

    @property
    def host(self) -> str | None:
        """The host on which the latest attempt runs, or ran; None if it is not known."""
        host = (self.run or {}).get("host") if self.attempt else None
        return host if isinstance(host, str) else None

    @property
    def workspace_id(self) -> str:
        """The job after which its workspace is named."""
        return self.directory_of or self.job_id

    def to_json(self) -> Json:
        """The stored record: the seed's fields first, in the seed's order."""
        fields = self.as_dict()
        fields.update(fields.pop("unknown"))
        fields["lease"] = self.lease.as_dict() if self.lease else None
        return fields


_KINDS: dict[str, tuple[type, ...]] = {
    "schema_version": (int,), "job_id": (str,), "status": (str,), "created_at": (str,), "updated_at": (str,),
    "prompt": (str,), "agent": (str,), "agent_session": (str,), "broker": (dict,), "topic_prefix": (str,),
    "timeout_sec": (int,), "idle_timeout_sec": (int,), "expected_artifacts": (list,), "last_seq": (int,),
    "auth_token": (type(None),), "number": (int,), "priority": (int,), "attempt": (int,), "claim_id": (str, type(None)),
    "owner": (str, type(None)), "lease": (dict, type(None)), "claimant": (dict, type(None)),
    "claimed_at": (str, type(None)), "heard_at": (str, type(None)), "ended_at": (str, type(None)),
    "ended_attempt": (int, type(None)), "losses": (int,), "max_losses": (int,), "retries": (int,),
    "max_retries": (int,), "waiting_for": (str, type(None)), "due_at": (str, type(None)), "reason": (str, type(None)),
    "result": (str, type(None)), "checked": (bool, type(None)), "key": (str, type(None)),
    "retry_of": (str, type(None)), "continues": (str, type(None)),
    "conversation": (dict, type(None)),
    "directory_of": (str, type(None)), "workdir": (str, type(None)), "origin_host": (str, type(None)),
    "after": (list,), "on_dependency_failure": (str,), "exclusive": (str, type(None)),
    "parent_id": (str, type(None)), "depth": (int,), "workspace": (str,), "permissions": (str,), "on_idle": (str,),
    "model": (str, type(None)), "retry_on_exit": (bool,),
    "validation": (dict, type(None)), "supervised": (bool,), "said": (dict, type(None)),
    "checks": (dict, type(None)), "run": (dict, type(None)),
    "seen": (dict, type(None)), "applied": (dict, type(None)),
    "repository": (dict, type(None)), "inbox": (dict, type(None)), "may_ask": (bool,), "questions": (list,),
    "registered_by": (str, type(None)),
}  # fmt: skip
_LEASE_KINDS = {"expires_at": (str,), "seconds": (int, float), "boot_id": (str,), "boot_ms": (int,)}
_REQUIRED = ("job_id", "status", "created_at", "prompt")
_COUNTS = ("last_seq", "number", "attempt", "ended_attempt", "losses", "max_losses", "retries", "max_retries", "depth")
CHOICES = {
    "on_dependency_failure": ("hold", "cancel", "run"),
    "workspace": ("workdir", "fresh", "worktree"),
    "permissions": ("ask", "edit", "full"),
    "on_idle": ("show", "stop"),
}
"""Fields with a fixed set of values."""
_SECONDS = ("timeout_sec", "idle_timeout_sec")
_INDEXED = ("agent", "agent_session", "key", "retry_of", "continues", "created_at", "exclusive")
"""Stores query and order by these, so every store must be able to hold them."""

MAX_COUNT = 2**53
"""The largest integer that every JSON reader holds exactly."""

MAX_SECONDS = 2**31 - 1
_TIMES = ("created_at", "updated_at", "claimed_at", "heard_at", "ended_at", "due_at")


def parse_job(fields: object, file: str) -> Job:
    """A job from the fields of a record without secrets; BadRecord names the wrong field."""
    if not isinstance(fields, dict):
        raise BadRecord(file=file, problem="not a JSON object")
    version = fields.get("schema_version", SCHEMA_VERSION)
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise BadRecord(file=file, problem=f"schema_version {version} is newer than this mam understands")
    fields = _with_defaults(fields, file)
    for name, kinds in _KINDS.items():
        if name in fields and type(fields[name]) not in kinds and not _has_type(fields[name], kinds):
            raise BadRecord(file=file, problem=f"{name} has the wrong type ({type(fields[name]).__name__})")
    _check_values(fields, file)
    known = {name: fields[name] for name in _KINDS if name in fields}
    unknown = {name: value for name, value in fields.items() if name not in _KINDS}
    lease = known.pop("lease", None)
    return Job(**{**known, "status": Status(known["status"])}, lease=_lease(lease, file), unknown=unknown)


def split_secrets(fields: Json) -> tuple[Json, Json]:
    """The record without its inline secrets, and those secrets by name."""
    secrets: Json = {}
    if fields.get("auth_token") is not None:
        secrets["auth_token"] = fields["auth_token"]
        fields = {**fields, "auth_token": None}
    broker = fields.get("broker")
    if isinstance(broker, dict) and broker.get("password") is not None:
        secrets["broker_password"] = broker["password"]
        fields = {**fields, "broker": {**broker, "password": None}}
    return fields, secrets


def _with_defaults(fields: Json, file: str) -> Json:
    for name in _REQUIRED:
        if name not in fields:
            raise BadRecord(file=file, problem=f"{name} is missing")
    agent = fields.get("agent") or "unknown"
    defaults = {
        "updated_at": fields["created_at"],
        "agent": agent,
        "agent_session": agent,
        "broker": NO_BROKER,
        "topic_prefix": default_prefix(fields["job_id"]),
        "expected_artifacts": [],
    }
    # An old record may hold null in place of a default.
    return {**fields, **{name: value for name, value in defaults.items() if fields.get(name) is None}}


def _has_type(value: object, kinds: tuple[type, ...]) -> bool:
    return isinstance(value, kinds) and not (isinstance(value, bool) and bool not in kinds)


def _check_values(fields: Json, file: str) -> None:
    if fields.get("schema_version", SCHEMA_VERSION) < 1:
        raise BadRecord(file=file, problem=f"schema_version {fields['schema_version']} has never existed")
    if not is_job_id(fields["job_id"]):
        raise BadRecord(file=file, problem="job_id is not an id that mam accepts")
    if fields["status"] not in Status.__members__.values():
        raise BadRecord(file=file, problem=f"status {fields['status'][:40]!r} is not a status")
    for name in _COUNTS:
        _check_range(name, fields.get(name), 0, MAX_COUNT, file)
    for name in _SECONDS:
        _check_range(name, fields.get(name), 0, MAX_SECONDS, file)
    _check_range("priority", fields.get("priority"), -MAX_COUNT, MAX_COUNT, file)
    for name in _INDEXED:
        _check_utf8(name, fields.get(name), file)
    for name in _TIMES:
        _check_time(name, fields.get(name), file)
    if not all(isinstance(path, str) for path in fields["expected_artifacts"]):
        raise BadRecord(file=file, problem="expected_artifacts holds something that is not text")
    if not all(isinstance(needed, str) and is_job_id(needed) for needed in fields.get("after", ())):
        raise BadRecord(file=file, problem="after holds something that is not a job id")
    if fields.get("claim_id") is not None and not is_claim_id(fields["claim_id"]):
        raise BadRecord(file=file, problem="claim_id is not a claim id")
    if fields.get("directory_of") is not None and not is_job_id(fields["directory_of"]):
        raise BadRecord(file=file, problem="directory_of is not a job id")
    if not isinstance((fields.get("conversation") or {}).get("host", ""), str):
        raise BadRecord(file=file, problem="conversation names no host")
    if not _is_session(fields.get("claimant")):
        raise BadRecord(file=file, problem="claimant does not name a session")
    if fields.get("questions"):
        from mam.jobs.question import check_questions

        check_questions(fields["questions"], file)
    for name, choices in CHOICES.items():
        if fields.get(name, choices[0]) not in choices:
            raise BadRecord(file=file, problem=f"{name} must be one of {', '.join(choices)}")


def _is_session(claimant: Json | None) -> bool:
    return claimant is None or all(is_session_id(claimant.get(name)) for name in CLAIMANT)


def _check_range(name: str, number: int | None, least: int, most: int, file: str) -> None:
    if number is not None and not least <= number <= most:
        raise BadRecord(file=file, problem=f"{name} is {'negative' if number < least else 'too large'}")


def _check_utf8(name: str, text: str | None, file: str) -> None:
    try:
        (text or "").encode()
    except UnicodeEncodeError:
        raise BadRecord(file=file, problem=f"{name} is not text that UTF-8 can hold") from None


def _check_time(name: str, text: str | None, file: str) -> None:
    if text is None:
        return
    try:
        parse_time(text)
    except ValueError:
        raise BadRecord(file=file, problem=f"{name} is not a time with a zone") from None


def _lease(fields: Json | None, file: str) -> Lease | None:
    if fields is None:
        return None
    try:
        lease = Lease(**{name: fields[name] for name in Lease.field_names if name in fields})
        # Refuse a bad lease here: otherwise every later claim would raise an exception.
        if all(_has_type(getattr(lease, name), kinds) for name, kinds in _LEASE_KINDS.items()) and _is_valid_lease(
            lease
        ):
            return lease
    except (TypeError, ValueError):
        pass
    raise BadRecord(file=file, problem="lease is not a lease")


def _is_valid_lease(lease: Lease) -> bool:
    lease.boot_id.encode()
    return lease.wall_ms > 0 and 0 <= lease.boot_ms <= MAX_COUNT and 0 <= lease.seconds <= MAX_SECONDS
