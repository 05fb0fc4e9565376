"""The artifacts of an attempt: what its worker found, and their content from the store or from this host."""

from __future__ import annotations

import hashlib
import os

from mam.artifacts import DIGEST_LIMIT, BadArtifact, artifact_content
from mam.errors import Refused
from mam.stores.outputs import ARTIFACT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.jobs.record import Job, Json
    from mam.stores.port import Store


def stored_artifacts(store: Store, job: Job, attempt: int) -> dict[str, Json]:
    """What the worker found at its checks, and what it copied into the store, by path."""
    checked = (job.checks or {}).get("artifacts", []) if attempt == job.attempt else []
    found: dict[str, Json] = {one["path"]: {**one, "is_stored": False} for one in checked}
    for file in store.outputs.files(job.job_id):
        if (file.attempt, file.kind) == (attempt, ARTIFACT):
            known = {"path": file.path, "size": file.size, "sha256": file.sha256}
            found[file.path] = {**known, "is_stored": file.is_stored}
    return found


def read_artifact(store: Store, job: Job, attempt: int, path: str) -> bytes:
    """The content, byte for byte; Refused if there is no such artifact, or if only another host has it."""
    artifact = stored_artifacts(store, job, attempt).get(path)
    if artifact is None:
        raise Refused(why=f"Job {job.job_id} has no artifact {path[:200]!r} of attempt {attempt}.")
    data = store.outputs.get(job.job_id, attempt, ARTIFACT, path)
    if data is None:
        data = _local_content(job, artifact)
    if data is None:
        where = "" if job.host is None else f" Look for it on {job.host}, in {(job.run or {}).get('place')}."
        raise Refused(why=f"The artifact {path[:200]!r} of job {job.job_id} is not in the store.{where}")
    return data


def _local_content(job: Job, artifact: Json) -> bytes | None:
    """From the directory of the job, if the attempt ran on this host and the file is still what the worker found."""
    place = (job.run or {}).get("place")
    if job.host != os.uname().nodename or not isinstance(place, str):
        return None
    try:
        data = artifact_content(place, artifact["path"].removeprefix(f"{place}/"), DIGEST_LIMIT)
    except BadArtifact:
        return None
    return data if hashlib.sha256(data).hexdigest() == artifact["sha256"] else None
