"""Parameters of the statements `claim` and `end` (queries.sql). tests/postgres/test_statements.py compares both
statements with the pure functions."""

from __future__ import annotations

from mam.events.event import redact
from mam.jobs.status import COMPLETED, ERROR
from mam.stores.common import new_claim_id
from mam.util.encoding import to_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.ending import End
    from mam.jobs.record import Json
    from mam.stores.port import ClaimRequest


def claim_values(request: ClaimRequest) -> Json:
    """As mam.stores.common.apply_claim gives them to mam.jobs.acts.claim."""
    return {
        "label": request.label,
        "owner": request.owner,
        "lease_seconds": request.lease_seconds,
        "claim_id": request.claim_id or new_claim_id(),
        "supervised": request.supervised,
        "host": request.host,
        "agent_id": request.agent_id,
        "generation_id": request.generation_id,
        "by": "worker" if request.supervised else "pick",
    }


def end_values(ended: End) -> Json:
    """As mam.jobs.ending.end reads them: a worker's end goes by the reason, another one by its status."""
    values: Json = {
        "attempt": ended.attempt, "claim_id": ended.claim_id, "supervised": ended.supervised,
        "run": None, "checks": None, "artifacts_unchecked": False,
    }  # fmt: skip
    if ended.supervised:
        status = COMPLETED if ended.reason is None else ERROR
        checks = ended.checks or {}
        values["checked"] = bool(checks.get("artifacts") or checks.get("script"))
        values["result"], values["reason"] = ended.result, ended.reason
        values["run"] = to_bytes(ended.run or {}).decode()
        values["checks"] = None if ended.checks is None else to_bytes(ended.checks).decode()
    elif ended.status is COMPLETED:
        status = COMPLETED
        values["checked"], values["result"], values["reason"] = ended.checked, ended.result, None
        values["artifacts_unchecked"] = ended.artifacts_unchecked
    else:
        status = ERROR
        values["checked"], values["result"], values["reason"] = None, None, ended.reason or "error"
    values["status"], values["by"] = status.value, "complete" if status is COMPLETED else "fail"
    values["detail"] = redact(values["reason"] or status)
    return values
