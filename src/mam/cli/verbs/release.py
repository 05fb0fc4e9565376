"""Return running jobs to pending; print each id.

This counts neither as a loss nor as a retry. Filters match running jobs only.
"""

from __future__ import annotations

from mam.cli.args.job_selection import act_on_each, add_jobs, check_selection, selected_jobs, single_attempt
from mam.cli.args.options import add_attempt, own_fence, registry_of
from mam.jobs.status import RUNNING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    add_jobs(parser)
    add_attempt(parser)


def run(options: Options) -> int:
    check_selection(options, own=True)
    registry = registry_of(options)
    jobs = selected_jobs(options, registry, {RUNNING})
    single_attempt(options, jobs)
    return act_on_each(
        jobs,
        lambda job: registry.release(job, **own_fence(options, registry, job)),
        as_json=options.json,
    )
