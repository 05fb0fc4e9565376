"""Say why a job is not running, or what became of it."""

from __future__ import annotations

from mam.cli.options import add_job, one_job, registry_of
from mam.cli.output import put, put_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    add_job(parser)


def run(options: Options) -> int:
    name = one_job(options)
    job, sentences = registry_of(options).explain(name)
    if options.json:
        put_json({"job_id": job.job_id, "status": job.status, "why": sentences})
        return 0
    put(f"Job {job.job_id} ({job.status})")
    for sentence in sentences:
        put(sentence)
    return 0
