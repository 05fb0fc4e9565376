"""Show the artifacts that a job's worker found, or print one.

In a pipe: path, size, SHA-256, and `stored` or `not stored`, separated by tabs. A worker copies each artifact into the
store, so that --get prints it on any host. It does not copy an artifact that is too large, or that contains a secret of
the worker's environment; only the host that ran the job can print that one.
"""

from __future__ import annotations

import os
import sys

from mam.cli.args.options import add_job, named_job, number, registry_of
from mam.cli.render.streams import print_json, print_row, say, stdout_is_terminal
from mam.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser
    from mam.jobs.record import Job, Json
    from mam.registry import Registry


def add_arguments(parser: Parser) -> None:
    add_job(parser)
    parser.add_argument("--get", metavar="PATH", help="print the content of this artifact, byte for byte")
    parser.add_argument("--attempt", type=number, metavar="N", help="the attempt; default: the latest")


def run(options: Options) -> int:
    registry = registry_of(options)
    job = registry.get(named_job(options))
    attempt = job.attempt if options.attempt is None else options.attempt
    found = _artifacts(registry, job, attempt)
    if options.get is not None:
        return _print_content(registry, job, attempt, found.get(options.get), options.get)
    if options.json:
        print_json({"job_id": job.job_id, "attempt": attempt, "host": job.host, "artifacts": list(found.values())})
    elif not found:
        say(_why_none(job))
    elif stdout_is_terminal():
        from mam.cli.render.table import print_table

        print_table(("PATH", "BYTES", "SHA-256", "IN THE STORE"), [_columns(one) for one in found.values()])
    else:
        for one in found.values():
            print_row(*_columns(one))
    return 0


def _artifacts(registry: Registry, job: Job, attempt: int) -> dict[str, Json]:
    """What the worker found at its checks, and what it copied into the store, by path."""
    from mam.stores.outputs import ARTIFACT

    checked = (job.checks or {}).get("artifacts", []) if attempt == job.attempt else []
    found: dict[str, Json] = {one["path"]: {**one, "is_stored": False} for one in checked}
    for file in registry.store.outputs.files(job.job_id):
        if (file.attempt, file.kind) == (attempt, ARTIFACT):
            known = {"path": file.path, "size": file.size, "sha256": file.sha256}
            found[file.path] = {**known, "is_stored": file.is_stored}
    return found


def _columns(one: Json) -> tuple[str, ...]:
    return one["path"], str(one["size"]), str(one["sha256"] or "-"), "stored" if one["is_stored"] else "not stored"


def _print_content(registry: Registry, job: Job, attempt: int, artifact: Json | None, path: str) -> int:
    if artifact is None:
        raise Refused(why=f"Job {job.job_id} has no artifact {path[:200]!r} of attempt {attempt}.")
    from mam.stores.outputs import ARTIFACT

    data = registry.store.outputs.get(job.job_id, attempt, ARTIFACT, path)
    if data is None:
        data = _local_content(job, artifact)
    if data is None:
        where = "" if job.host is None else f" Look for it on {job.host}, in {(job.run or {}).get('place')}."
        raise Refused(why=f"The artifact {path[:200]!r} of job {job.job_id} is not in the store.{where}")
    sys.stdout.buffer.write(data)
    return 0


def _local_content(job: Job, artifact: Json) -> bytes | None:
    """From the directory of the job, if the attempt ran on this host and the file is still what the worker found."""
    import hashlib

    from mam.artifacts import DIGEST_LIMIT, BadArtifact, artifact_content

    place = (job.run or {}).get("place")
    if job.host != os.uname().nodename or not isinstance(place, str):
        return None
    try:
        data = artifact_content(place, artifact["path"].removeprefix(f"{place}/"), DIGEST_LIMIT)
    except BadArtifact:
        return None
    return data if hashlib.sha256(data).hexdigest() == artifact["sha256"] else None


def _why_none(job: Job) -> str:
    if not job.expected_artifacts:
        return f"job {job.job_id[:8]} promised no artifacts; `mam register --artifact PATH` asks for them"
    return f"job {job.job_id[:8]} has none yet: a worker checks them when its agent has ended"
