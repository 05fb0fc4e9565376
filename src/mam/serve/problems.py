"""Errors as problem details (RFC 9457), with mam's exit code."""

from __future__ import annotations

from starlette.responses import Response

from mam.errors import (
    AlreadyRegistered,
    AmbiguousId,
    AnswerTooLate,
    AttemptNeeded,
    BadConfig,
    BadInput,
    BadRecord,
    ClaimLost,
    GenerationLost,
    JobChanged,
    KeyReused,
    MamError,
    NoSuchWorker,
    NotAllowed,
    NotLoggedIn,
    StoreUnavailable,
    TimedOut,
    UnknownJob,
    UnknownStatus,
)
from mam.util.encoding import to_bytes
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from mam.jobs.record import Json

MEDIA_TYPE = "application/problem+json"

STATUS_OF: tuple[tuple[type[MamError], int], ...] = (
    (NotLoggedIn, 401),
    (NotAllowed, 403),
    (UnknownJob, 404),
    (NoSuchWorker, 404),
    (AmbiguousId, 409),
    (AlreadyRegistered, 409),
    (AnswerTooLate, 409),
    (ClaimLost, 412),
    (GenerationLost, 412),
    (JobChanged, 412),
    (BadInput, 422),
    (KeyReused, 422),
    (UnknownStatus, 422),
    (AttemptNeeded, 428),
    (BadRecord, 500),
    (BadConfig, 500),
    (StoreUnavailable, 503),
    (TimedOut, 504),
)
"""Every other error of mam is a conflict with the state of a job: 409."""

TITLES = {
    400: "Bad request", 401: "Log in first", 403: "Not allowed", 404: "Not found", 405: "Method not allowed",
    406: "Not acceptable", 409: "Conflict", 412: "Precondition failed", 413: "Too large", 415: "Not JSON",
    421: "Wrong host", 422: "Invalid", 423: "Paused", 428: "Precondition required", 429: "Too many failures",
    431: "Headers too large", 500: "Internal error", 503: "Not available", 504: "Timed out",
}  # fmt: skip


class Problem(Exception):
    """A problem that no error of mam describes: one of HTTP itself."""

    def __init__(
        self, status: int, detail: str, *, kind: str | None = None, headers: Mapping[str, str] | None = None,
        exit_code: int = 1, **more: object,
    ) -> None:  # fmt: skip
        super().__init__(detail)
        self.facts = ProblemFacts(
            status=status, kind=kind or TITLES[status].title().replace(" ", ""), detail=detail, exit_code=exit_code,
            headers=dict(headers or {}), more=more,
        )  # fmt: skip


class ProblemFacts(Frozen):
    status: int
    kind: str
    detail: str
    exit_code: int
    headers: dict[str, str] = {}  # noqa: RUF012
    more: Json = {}  # noqa: RUF012

    def to_json(self, prefix: str = "") -> Json:
        return {
            "type": f"{prefix}/api/v1/docs#{self.kind}", "title": TITLES.get(self.status, "Error"),
            "status": self.status, "detail": self.detail, "exit_code": self.exit_code, **self.more,
        }  # fmt: skip


def facts_of(error: Exception) -> ProblemFacts:
    """A bug names no detail: its text could contain anything."""
    if isinstance(error, Problem):
        return error.facts
    if isinstance(error, MamError):
        status = next((status for kind, status in STATUS_OF if isinstance(error, kind)), 409)
        more = {name: error.facts[name] for name in ("job", "attempt") if isinstance(error.facts.get(name), (str, int))}
        headers = {"www-authenticate": 'Bearer realm="mam"'} if status == 401 else {}
        return ProblemFacts(
            status=status, kind=type(error).__name__, detail=_without_address(error), exit_code=error.exit_code,
            headers=headers, more=more,
        )  # fmt: skip
    if isinstance(error, OSError):
        return ProblemFacts(status=503, kind="SystemError", detail="The system refused this.", exit_code=9)
    return ProblemFacts(status=500, kind="Bug", detail="This is a bug in mam; its log has the name.", exit_code=1)


def _without_address(error: MamError) -> str:
    """Callers over the network learn no path and no host of the store."""
    return str(type(error)(**{**error.facts, "store": "this store"}) if "store" in error.facts else error)


def problem_response(facts: ProblemFacts, prefix: str = "") -> Response:
    body = to_bytes(facts.to_json(prefix))
    return Response(body, facts.status, headers=facts.headers, media_type=MEDIA_TYPE)
