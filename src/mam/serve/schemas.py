"""The schemas of parameters and bodies, and references to those of `schemas/`.

A schema that checks input holds no reference: `mam.serve.checks` reads it as it is.
"""

from __future__ import annotations

from mam.jobs.input_rules import NAME_LIMIT, PATH_LIMIT, REASON_LIMIT, TEXT_LIMIT
from mam.jobs.record import CHOICES, MAX_COUNT
from mam.jobs.status import Status
from mam.serve.route import HEADER, PATH, Param

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Json

SECONDS_LIMIT = 2**31 - 1
WAIT_LIMIT = 300
NAMES_LIMIT = 100

JOB_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"
NAME_PATTERN = r"^[^\x00-\x1f\x7f-\x9f]*[^\x00-\x20\x7f-\xa0][^\x00-\x1f\x7f-\x9f]*$"
"""One line that is not blank."""
PLAIN_PATTERN = r"^[^\x00]*$"
PROMPT_PATTERN = r"^[^\x00]*[^\x00\s][^\x00]*$"
MODEL_PATTERN = r"^[^\s\x00-\x1f\x7f-\x9f-][^\s\x00-\x1f\x7f-\x9f]*$"


def ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def text(limit: int, meaning: str, *, pattern: str | None = None, example: str | None = None) -> Json:
    """A long text that a body must have needs an example, or schemathesis finds no valid body."""
    made: Json = {"type": "string", "minLength": 1, "maxLength": limit, "description": meaning}
    made["pattern"] = PLAIN_PATTERN if pattern is None else pattern
    return made if example is None else {**made, "examples": [example]}


def name(meaning: str) -> Json:
    return text(NAME_LIMIT, meaning, pattern=NAME_PATTERN)


def when(meaning: str) -> Json:
    """A duration or a moment; `mam.util.human_time` reads it."""
    return {**text(100, meaning), "format": "mam-time"}


def whole(meaning: str, least: int, most: int) -> Json:
    return {"type": "integer", "minimum": least, "maximum": most, "description": meaning}


def flag(meaning: str) -> Json:
    return {"type": "boolean", "description": meaning}


def one_of(field: str, meaning: str) -> Json:
    return {"type": "string", "enum": list(CHOICES[field]), "description": meaning}


def several(items: Json, meaning: str, most: int = NAMES_LIMIT) -> Json:
    return {"type": "array", "items": items, "maxItems": most, "description": meaning}


def record(properties: Json, *, required: tuple[str, ...] = (), **rules: object) -> Json:
    """The schema of a body: fields that it does not name are refused. `rules` describe what the registry checks."""
    made: Json = {"type": "object", "properties": properties, "additionalProperties": False, **rules}
    return {**made, "required": list(required)} if required else made


JOB = Param(
    name="job", place=PATH, is_required=True, schema={"type": "string", "pattern": JOB_PATTERN},
    meaning="The id of a job; a unique prefix is enough for a viewer with the scope read.",
)  # fmt: skip
ATTEMPT = Param(
    name="Mam-Attempt", place=HEADER, is_required=True, schema=whole("", 1, MAX_COUNT),
    meaning="The attempt of the claim; without it the answer is 428.",
)  # fmt: skip
CLAIM = Param(
    name="Mam-Claim", place=HEADER, is_required=True, schema={"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"},
    meaning="The claim id of the claim; without it the answer is 428.",
)  # fmt: skip
KEY = Param(
    name="Idempotency-Key", place=HEADER, schema=name(""),
    meaning="The job's key: a repeat returns the first job. With another body the answer is 422.",
)  # fmt: skip
IF_MATCH = Param(
    name="If-Match", place=HEADER, schema={"type": "string", "maxLength": 1000},
    meaning="Change the job only if it still has this ETag; otherwise the answer is 412.",
)  # fmt: skip

STATUSES = [str(status) for status in Status]

ARTIFACT: Json = {**text(PATH_LIMIT, "A path in the job's directory."), "format": "mam-path"}
LIMITS: Json = {
    "timeout_sec": whole("Seconds that an attempt may take; 0 for no limit.", 0, SECONDS_LIMIT),
    "idle_timeout_sec": whole("Seconds of silence after which the job is quiet; 0 for none.", 0, SECONDS_LIMIT),
    "priority": whole("Workers claim a higher priority first.", -1000, 1000),
    "at": when("The earliest start: +2h, 90s, 2026-11-15T10:00:00Z."),
    "max_retries": whole("Repeats after retryable failures.", 0, 1000),
    "permissions": one_of("permissions", "What the agent may do without asking."),
    "model": text(NAME_LIMIT, "The model that the agent uses.", pattern=MODEL_PATTERN),
    "on_idle": one_of("on_idle", "What happens after the idle timeout."),
    "retry_on_exit": flag("Whether an exit code other than 0 is a failure that is retried."),
    "artifacts": several(ARTIFACT, "Files that the job must leave."),
}  # fmt: skip
"""The choices of a new job and of a continuation."""

PROMPT = text(TEXT_LIMIT, "The task.", pattern=PROMPT_PATTERN, example="Tidy up the README.")
REASON = text(REASON_LIMIT, "Why; for people.")
