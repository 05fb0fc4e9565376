"""The resources of a job: its record, what its agent printed, and its diff."""

from __future__ import annotations

from itertools import islice

from mam.errors import MamError
from mam.mcp.messages import INVALID_PARAMS, OLD_RESOURCE_NOT_FOUND, RpcError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mam.jobs.record import Job
    from mam.mcp.caller import Service
    from mam.mcp.messages import Json
    from mam.mcp.versions import Client

SCHEME = "mam://jobs/"
RECORD, LOG, DIFF = "", "log", "diff"
LISTED = 50
LIMIT = 256 * 1024
"""Bytes of a log (its end) or a diff (its beginning): more than an agent reads at once."""

TEMPLATES: list[Json] = [
    {"uriTemplate": "mam://jobs/{id}", "name": "job", "description": "The record of a job",
     "mimeType": "application/json"},
    {"uriTemplate": "mam://jobs/{id}/log", "name": "log", "description": "What the job's agent printed: the end of it",
     "mimeType": "text/plain"},
    {"uriTemplate": "mam://jobs/{id}/diff", "name": "diff", "description": "What the job changed",
     "mimeType": "text/x-diff"},
]  # fmt: skip


def list_resources(service: Service) -> list[Json]:
    """The newest jobs; the templates reach every other."""
    from mam.jobs.question import first_line
    from mam.registry.listing import JobFilter

    try:
        jobs = list(islice(service.backend.select(JobFilter()), LISTED))
    except MamError:
        return []  # there is no store yet
    return [
        {"uri": f"{SCHEME}{job.job_id}", "name": job.job_id, "mimeType": "application/json",
         "description": f"{job.status}, {job.agent}: {first_line(job.prompt)}"}
        for job in jobs
    ]  # fmt: skip


def read_resource(service: Service, client: Client, uri: object) -> Json:
    try:
        job, part = find_resource(service, uri)
        contents = _read(service, job, part)
    except MamError as error:
        raise not_found(client, uri, error) from None
    return {"contents": [{"uri": uri, **contents}]}


def not_found(client: Client, uri: object, error: MamError) -> RpcError:
    code = INVALID_PARAMS if client.is_stateless else OLD_RESOURCE_NOT_FOUND
    return RpcError(code, str(error), {"uri": str(uri)[:200]})


def find_resource(service: Service, uri: object) -> tuple[Job, str]:
    """The job and the part of it that an address names. The id is whole: an address is no place for a prefix."""
    from mam.errors import UnknownJob
    from mam.jobs.input_rules import is_job_id

    text = uri if isinstance(uri, str) else ""
    job_id, _, part = text.removeprefix(SCHEME).partition("/")
    if not text.startswith(SCHEME) or part not in (RECORD, LOG, DIFF) or text.endswith("/") or not is_job_id(job_id):
        raise UnknownJob(job=f"with the address {text[:120]!r}", store="this server")
    return service.backend.get_exact(job_id), part


def _read(service: Service, job: Job, part: str) -> Json:
    if part == LOG:
        return {"mimeType": "text/plain", "text": _last(service.backend.log(job))}
    if part == DIFF:
        return {"mimeType": "text/x-diff", "text": _first(service.backend.diff(job))}
    import json

    return {"mimeType": "application/json", "text": json.dumps(_public(job), indent=1)}


def _public(job: Job) -> Json:
    """Without the claim id, which is half of the right to report on the job."""
    return {**job.to_json(), "claim_id": None}


def _last(parts: Iterable[bytes]) -> str:
    """The last LIMIT bytes, from the beginning of a line."""
    kept = b""
    cut = False
    for part in parts:
        kept += part
        if len(kept) > 2 * LIMIT:
            kept, cut = kept[-LIMIT:], True
    if len(kept) > LIMIT:
        kept, cut = kept[-LIMIT:], True
    text = kept.decode(errors="replace")
    return f"[earlier output was cut]\n{text.partition(chr(10))[2]}" if cut else text


def _first(parts: Iterable[bytes]) -> str:
    kept = b""
    for part in parts:
        kept += part
        if len(kept) > LIMIT:
            return kept[:LIMIT].decode(errors="replace") + "\n[the rest of the diff was cut]\n"
    return kept.decode(errors="replace")
