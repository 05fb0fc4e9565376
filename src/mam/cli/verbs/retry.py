"""Register ended jobs again; print the id of each new job.

The new job starts from the beginning; --continue keeps the conversation and the directory. The field retry_of of the
new job names the old one. A repeated retry returns the same new job. Without --status, the filters match jobs in error
that have not been retried.
"""

from __future__ import annotations

from mam.cli.args.job_selection import act_on_each, add_jobs, check_selection, selected_jobs
from mam.cli.args.options import registry_of
from mam.jobs.status import ERROR
from mam.stores.port import Query

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser
    from mam.registry import Registry
    from mam.stores.port import Registration


def add_arguments(parser: Parser) -> None:
    add_jobs(parser)
    parser.add_argument("--continue", action="store_true", help="in the same conversation and directory")


def run(options: Options) -> int:
    check_selection(options)
    registry = registry_of(options)
    jobs = selected_jobs(options, registry, {ERROR})
    if not options.words and not options.job:
        jobs = _not_retried(registry, jobs)
    return act_on_each(jobs, lambda job: _retried(registry, job, options).job, as_json=options.json)


def _retried(registry: Registry, job: str, options: Options) -> Registration:
    continues = getattr(options, "continue")
    if continues:
        from mam.work.conversation_checks import check_can_resume_here

        check_can_resume_here(registry.get(job))
    return registry.retry(job, continues=continues)


def _not_retried(registry: Registry, jobs: list[str]) -> list[str]:
    retried = {job.retry_of for job in registry.select(Query())}
    return [job for job in jobs if job not in retried]
