"""Jobs as the API shows them."""

from __future__ import annotations

from mam.jobs.question import open_questions
from mam.serve.call import Answer, etag_of
from mam.util.encoding import to_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Job, Json

TITLE_LIMIT = 200
REASON_SHOWN = 500

_SUMMARY = (
    "job_id", "number", "status", "agent", "agent_session", "priority", "created_at", "updated_at", "claimed_at",
    "ended_at", "due_at", "waiting_for", "attempt", "owner", "retries", "key", "retry_of", "continues", "parent_id",
    "workspace", "permissions", "registered_by", "seen",
)  # fmt: skip


def job_json(job: Job) -> Json:
    """The record. Only the answer to a claim holds its claim id: who knows it can report on the job."""
    return {**job.to_json(), "claim_id": None}


def job_answer(job: Job, *, status: int = 200, headers: dict[str, str] | None = None) -> Answer:
    """A job with its revision, which `If-Match` of a change names."""
    data = to_bytes(job_json(job))
    return Answer(body=data, status=status, headers={"etag": etag_of(data), **(headers or {})})


def etag_of_job(job: Job) -> str:
    return etag_of(to_bytes(job_json(job)))


def summary_json(job: Job) -> Json:
    """One row of a list; prompts and results may have megabytes."""
    fields = {name: getattr(job, name) for name in _SUMMARY}
    title = next((line.strip() for line in job.prompt[:10_000].splitlines() if line.strip()), "")
    return {
        **fields, "host": job.host, "title": title[:TITLE_LIMIT],
        "reason": None if job.reason is None else job.reason[:REASON_SHOWN], "has_result": job.result is not None,
        "open_questions": len(open_questions(job)),
    }  # fmt: skip
