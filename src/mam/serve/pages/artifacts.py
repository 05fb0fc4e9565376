"""The artifacts of a job, and one of them as a preview or a file to save."""

from __future__ import annotations

import hashlib
import os

from markupsafe import Markup

from mam.errors import Refused
from mam.serve.pages import ansi, markdown
from mam.serve.pages.facts import size_words
from mam.util.frozen import Frozen
from mam.util.safe_text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.access.reading import AuthorizedReading
    from mam.jobs.record import Job, Json

PREVIEW_LIMIT = 200_000


class ArtifactRow(Frozen):
    path: str
    """As the record has it, for addresses."""
    name: str
    size: str
    is_stored: bool


class Preview(Frozen):
    """A text as the page shows it; None for content that is not text."""

    name: str
    size: str
    html: Markup | None
    is_markdown: bool
    is_cut: bool


def artifact_rows(reading: AuthorizedReading, job: Job) -> tuple[ArtifactRow, ...]:
    return tuple(
        ArtifactRow(path=path, name=one_line(_short_path(job, path)), is_stored=bool(one.get("is_stored")),
                    size=size_words(one["size"]) if type(one.get("size")) is int else "")
        for path, one in _known(reading, job).items()
    )  # fmt: skip


def preview_of(reading: AuthorizedReading, job: Job, path: str) -> Preview:
    data = content_of(reading, job, path)
    name, size = one_line(_short_path(job, path)), size_words(len(data))
    is_markdown = path.lower().endswith((".md", ".markdown"))
    if b"\0" in data[:8_000]:
        return Preview(name=name, size=size, html=None, is_markdown=False, is_cut=False)
    text = data[:PREVIEW_LIMIT].decode("utf-8", "replace")
    html = markdown.to_html(text) if is_markdown else ansi.to_html(text)
    return Preview(name=name, size=size, html=html, is_markdown=is_markdown, is_cut=len(data) > PREVIEW_LIMIT)


def content_of(reading: AuthorizedReading, job: Job, path: str) -> bytes:
    """From the store, or from the job's directory on this host if the file is still what the worker found."""
    from mam.stores.outputs import ARTIFACT

    known = _known(reading, job).get(path)
    if known is None:
        raise Refused(why=f"Job {job.job_id} has no artifact {path[:200]!r} of attempt {job.attempt}.")
    data = reading.registry.store.outputs.get(job.job_id, job.attempt, ARTIFACT, path)
    data = _on_this_host(job, known) if data is None else data
    if data is None:
        place = f"; look for it on {job.host}" if job.host else ""
        raise Refused(why=f"The artifact {path[:200]!r} of job {job.job_id} is not in the store{place}.")
    return data


def _known(reading: AuthorizedReading, job: Job) -> dict[str, Json]:
    """What the worker found at its checks and what it copied into the store, by path."""
    from mam.stores.outputs import ARTIFACT

    found = {one["path"]: {**one, "is_stored": False} for one in (job.checks or {}).get("artifacts") or ()
             if isinstance(one, dict) and isinstance(one.get("path"), str)}  # fmt: skip
    for file in reading.registry.store.outputs.files(job.job_id):
        if (file.attempt, file.kind) == (job.attempt, ARTIFACT):
            known = {"path": file.path, "size": file.size, "sha256": file.sha256}
            found[file.path] = {**known, "is_stored": file.is_stored}
    return found


def _on_this_host(job: Job, artifact: Json) -> bytes | None:
    from mam.artifacts import DIGEST_LIMIT, BadArtifact, artifact_content

    place = (job.run or {}).get("place")
    if job.host != os.uname().nodename or not isinstance(place, str):
        return None
    try:
        data = artifact_content(place, str(artifact["path"]).removeprefix(f"{place}/"), DIGEST_LIMIT)
    except BadArtifact:
        return None
    return data if hashlib.sha256(data).hexdigest() == artifact.get("sha256") else None


def _short_path(job: Job, path: str) -> str:
    place = (job.run or {}).get("place")
    return path.removeprefix(f"{place}/") if isinstance(place, str) else path
