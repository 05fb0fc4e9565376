"""The requests that a door accepts: reports and questions of one job under one attempt, its children, and reads of
these jobs.

Every request is hostile input. Each job that it names is looked up among the door's job and its descendants; any other
job is reported as unknown.
"""

from __future__ import annotations

import json
import os

from mam.door_client import NotHere
from mam.errors import AmbiguousId, BadInput, ClaimLost, MamError, Refused, UnknownJob
from mam.events.data import check_nested_data
from mam.jobs import acts
from mam.jobs.input_rules import REASON_LIMIT, TEXT_LIMIT, check_text, is_claim_id, is_job_id
from mam.jobs.question import draft_from_fields
from mam.jobs.record import MAX_COUNT, Job
from mam.jobs.rights import Grants, child_choices, parent_fields
from mam.util.frozen import Frozen
from mam.util.strict_json import safe_json
from mam.work.children import check_room, is_descendant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mam.jobs.acts import Fence
    from mam.registry import Registry
    from mam.work.asking.in_worker import WorkerAsker

    Json = dict[str, Any]

BODY_LIMIT = TEXT_LIMIT
"""The limit for the text after the line: a prompt or a result."""

_REPLY_FIELDS = ("job_id", "status", "attempt", "claim_id", "last_seq", "lease", "retries", "max_retries", "due_at")
"""What the verbs print after a write; the texts of a job may be megabytes."""

_CHILDREN_SHOWN = 200
_PREFIX_LIMIT = 100
"""The limit of ids that a prefix may match; a longer prefix is needed then."""

_OF_REGISTER = frozenset({"verb", "body", "whole", "agent", "prompt", "choices", "sign"})


class DoorScope(Frozen):
    """What a door gives access to."""

    registry: Registry
    job_id: str
    attempt: int
    claim_id: str | None
    workdir: str
    """The agent's directory without links, as it was when the door was opened."""
    max_depth: int
    grants: Grants
    logs_dir: str | None
    asker: WorkerAsker


class DoorRequest(Frozen):
    """One request, parsed."""

    verb: str
    fields: Json
    body: str | None

    def text(self, name: str, default: str | None = None) -> str:
        value = self.fields.get(name, default)
        if not isinstance(value, str):
            raise BadInput(why=f"{name} must be a text")
        return value

    def long_text(self, name: str) -> str | None:
        """From the text after the line, or from the line if it is short."""
        return self.body if self.body is not None else self.text(name) if name in self.fields else None


def parse_line(line: bytes) -> Json:
    """The JSON object in a line; raises BadInput for everything else."""
    try:
        fields = safe_json(line)
    except ValueError:
        fields = None
    if not isinstance(fields, dict) or not isinstance(fields.get("verb"), str):
        raise BadInput(why='a request is one line of JSON in UTF-8: {"verb": "publish", "event": "progress"}')
    return fields


def body_bytes(fields: Json) -> int:
    """The size of the text after the line."""
    size = fields.get("body", 0)
    if type(size) is not int or not 0 <= size <= BODY_LIMIT:
        raise BadInput(why=f"body must be a number of bytes; at most {BODY_LIMIT:,}")
    return size


def error_answer(error: MamError) -> Json:
    return {"error": type(error).__name__, "message": str(error), "exit_code": error.exit_code}


def answer(scope: DoorScope, request: DoorRequest) -> Json:
    """The verb's answer; raises MamError."""
    try:
        do = _VERBS[request.verb]
    except KeyError:
        known = ", ".join([*_VERBS, "wait", "await"])
        raise Refused(why=f"{request.verb[:40]!r} is not for this socket; it takes {known}.") from None
    return {"ok": True, **do(scope, request)}


def shows_activity(verb: str) -> bool:
    """Whether the request shows that the agent is alive and working."""
    return verb in _WRITES


# -- what a holder says ----------------------------------------------------------------------------------------------


def _publish(scope: DoorScope, request: DoorRequest) -> Json:
    data = check_nested_data(request.fields.get("data", {}))
    check_text("data", json.dumps(data), REASON_LIMIT)
    detail = check_text("detail", request.text("detail", ""), REASON_LIMIT)
    job = scope.registry.publish(
        _own(scope, request), event=request.text("event"), detail=detail, data=data, **_fence(scope, request)
    )
    return _after(job, request)


def _heartbeat(scope: DoorScope, request: DoorRequest) -> Json:
    return _after(scope.registry.heartbeat(_own(scope, request), **_fence(scope, request)), request)


def _complete(scope: DoorScope, request: DoorRequest) -> Json:
    result = request.long_text("result")
    return _after(scope.registry.complete(_own(scope, request), **_fence(scope, request), result=result), request)


def _fail(scope: DoorScope, request: DoorRequest) -> Json:
    reason, retryable = request.long_text("reason"), request.fields.get("retryable", False)
    if reason is None or not isinstance(retryable, bool):
        raise BadInput(why="fail takes a reason, and retryable as true or false")
    job = scope.registry.fail(_own(scope, request), reason=reason, **_fence(scope, request), retryable=retryable)
    return _after(job, request)


def _register(scope: DoorScope, request: DoorRequest) -> Json:
    """Registers a child. Its rights are at most its parent's (`rights.py`), and it may depend only on the parent's
    descendants."""
    parent = scope.registry.store.get(scope.job_id)
    try:
        acts.check_fence(parent, scope.attempt, scope.claim_id)
    except ClaimLost as lost:
        _note_loss(scope, request, lost)
        raise
    check_room(scope.registry, scope.job_id)
    prompt, sign, agent = request.long_text("prompt"), request.fields.get("sign", False), request.text("agent")
    if prompt is None or not isinstance(sign, bool):
        raise BadInput(why="register takes a prompt, and sign as true or false")
    if more := request.fields.keys() - _OF_REGISTER:
        raise BadInput(why=f"register does not take {min(more)[:40]!r}; options of a child belong in choices")
    wanted = request.fields.get("choices", {})
    choices = child_choices(parent, agent, wanted, scope.grants, scope.workdir, os.path.realpath)
    choices["after"] = [resolve(scope, needed) for needed in choices.get("after", ())]
    choices |= {**parent_fields(parent, scope.max_depth), "origin_host": os.uname().nodename}
    choices |= {"broker": parent.broker, "may_ask": parent.may_ask}
    registration = scope.registry.register(prompt=prompt, agent=agent, sign=sign, **choices)
    whole = bool(request.fields.get("whole")) or not registration.created
    return {"job": registration.job.to_json() if whole else _short(registration.job), "created": registration.created}


# -- what it needs from a person --------------------------------------------------------------------------------------


def _ask(scope: DoorScope, request: DoorRequest) -> Json:
    _own(scope, request)
    _fence(scope, request)
    try:
        fields = safe_json(request.body or "")
    except ValueError:
        raise BadInput(why="ask takes a question as JSON in the text after the line") from None
    return {"question": scope.asker.open(draft_from_fields(fields)).as_dict()}


def _withdraw(scope: DoorScope, request: DoorRequest) -> Json:
    _fence(scope, request)
    return {"question": scope.asker.withdraw(question_number(request)).as_dict()}


def question_number(request: DoorRequest) -> int:
    number = request.fields.get("question")
    if type(number) is not int or not 0 < number <= MAX_COUNT:
        raise BadInput(why="question must be the number of a question")
    return number


def _cancel(scope: DoorScope, request: DoorRequest) -> Json:
    """Only a descendant: the job itself is called off by its user."""
    job_id = resolve(scope, request.fields.get("job", scope.job_id))
    if job_id == scope.job_id:
        raise Refused(why=f"Job {job_id} cannot cancel itself; `mam fail` ends it.")
    reason = check_text("reason", request.text("reason", f"cancelled by job {scope.job_id}"), REASON_LIMIT)
    return {"job": scope.registry.cancel(job_id, reason=reason).to_json()}


# -- what may be read ------------------------------------------------------------------------------------------------


def _get(scope: DoorScope, request: DoorRequest) -> Json:
    return {"job": scope.registry.store.get(resolve(scope, request.fields.get("job", scope.job_id))).to_json()}


def _overview(scope: DoorScope, request: DoorRequest) -> Json:
    """What `mam show --json` prints about this job or a descendant."""
    found = scope.registry.overview(resolve(scope, request.fields.get("job", scope.job_id)))
    return {"job": found.job.to_json(), "overview": found.to_json()}


def _children(scope: DoorScope, _request: DoorRequest) -> Json:
    """The jobs that this job registered itself, newest first."""
    newest = reversed(scope.registry.store.children(scope.job_id)[-_CHILDREN_SHOWN:])
    return {"jobs": [scope.registry.get_exact(job_id).to_json() for job_id in newest]}


def _resolve(scope: DoorScope, request: DoorRequest) -> Json:
    return {"job_id": resolve(scope, request.fields.get("job", scope.job_id))}


def _logs(scope: DoorScope, request: DoorRequest) -> Json:
    if scope.logs_dir is None:
        raise Refused(why="This worker keeps no log that could be read through its socket.")
    from mam.audit.sync import AuditLog
    from mam.work.door.logs import read_log_page

    job_id, workdir = resolve(scope, request.fields.get("job", scope.job_id)), request.fields.get("place", 0)
    if type(workdir) is not int or not 0 <= workdir < 2**63:
        raise BadInput(why="place must be where the last answer ended")
    AuditLog(scope.logs_dir).follow(scope.registry.store)
    lines, workdir = read_log_page(scope.logs_dir, job_id, workdir)
    return {"lines": lines, "place": workdir}


# -- within the family -----------------------------------------------------------------------------------------------


def resolve(scope: DoorScope, name: object) -> str:
    """The complete id of this job or of a descendant; raises NotHere for anything else."""
    if not isinstance(name, str) or not is_job_id(name):
        raise _not_here(name)
    if name == scope.job_id or is_descendant(scope.registry, name, scope.job_id):
        return name
    found = scope.registry.store.ids_with_prefix(name, _PREFIX_LIMIT)
    if len(found) == _PREFIX_LIMIT:
        raise BadInput(why=f"{name} is too short for an id prefix here; give more of it")
    family = [job_id for job_id in found if _is_family(scope, job_id)]
    if len(family) > 1:
        raise AmbiguousId(prefix=name, candidates=family[:10], more="")
    if not family:
        raise _not_here(name)
    return family[0]


def read_child(scope: DoorScope, job_id: str) -> Job:
    """A descendant, by its complete id, as it is now."""
    if not is_job_id(job_id):
        raise _not_here(job_id)
    try:
        job = scope.registry.store.get(job_id)
    except UnknownJob:
        raise _not_here(job_id) from None
    if not is_descendant(scope.registry, job_id, scope.job_id):
        raise _not_here(job_id)
    return job


def _is_family(scope: DoorScope, job_id: str) -> bool:
    return job_id == scope.job_id or is_descendant(scope.registry, job_id, scope.job_id)


def _not_here(name: object) -> NotHere:
    shown = repr(name[:80]) if isinstance(name, str) else "that"
    return NotHere(message=f"There is no job {shown} here: this socket knows one job and its children.")


def _own(scope: DoorScope, request: DoorRequest) -> str:
    name = request.fields.get("job", scope.job_id)
    if name != scope.job_id and resolve(scope, name) != scope.job_id:
        raise NotHere(message="This socket takes reports of its own job only.")
    return scope.job_id


def _fence(scope: DoorScope, request: DoorRequest) -> Fence:
    """The door's own claim. If the agent gives an attempt or a claim id, they must be the same."""
    given, claim_id = request.fields.get("attempt", scope.attempt), request.fields.get("claim_id")
    if type(given) is not int or not 0 <= given <= MAX_COUNT:
        raise BadInput(why="attempt must be a whole number")
    if claim_id is not None and not is_claim_id(claim_id):
        raise BadInput(why="claim_id must be the id of a claim")
    is_another = None not in (claim_id, scope.claim_id) and claim_id != scope.claim_id
    if given != scope.attempt or is_another:
        owner = f"attempt {scope.attempt}" if given != scope.attempt else f"another claim of attempt {given}"
        lost = ClaimLost(job=scope.job_id, attempt=given, why=f"this socket belongs to {owner}")
        _note_loss(scope, request, lost)
        raise lost
    return {"attempt": scope.attempt, "claim_id": scope.claim_id}


def _note_loss(scope: DoorScope, request: DoorRequest, lost: ClaimLost) -> None:
    """A rejected write leaves a line in the audit log. The registry writes it, unless the rejection came before."""
    if scope.logs_dir is not None:
        from mam.audit.sync import AuditLog

        AuditLog(scope.logs_dir).refused(scope.registry.store, scope.job_id, request.verb, str(lost))


def _after(job: Job, request: DoorRequest) -> Json:
    return {"job": job.to_json() if request.fields.get("whole") is True else _short(job)}


def _short(job: Job) -> Json:
    fields = {name: getattr(job, name) for name in _REPLY_FIELDS}
    return {**fields, "lease": job.lease.as_dict() if job.lease else None}


_VERBS: dict[str, Callable[[DoorScope, DoorRequest], Json]] = {
    "publish": _publish, "heartbeat": _heartbeat, "complete": _complete, "fail": _fail, "register": _register,
    "get": _get, "overview": _overview, "children": _children, "cancel": _cancel, "resolve": _resolve, "logs": _logs,
    "ask": _ask, "withdraw": _withdraw,
}  # fmt: skip
_WRITES = frozenset({"publish", "heartbeat", "complete", "fail", "register", "ask", "cancel"})
