"""Note that you looked at the outcome of jobs; print each id.

This changes neither the status nor updated_at. `mam list` and `mam watch` then no longer count a failure among those
that need you; `mam list --unseen` shows the others. The audit log records every viewer. Without --status, the filters
match jobs in error that were neither retried nor seen.

  mam seen JOB
  mam seen --since 1d
"""

from __future__ import annotations

from mam.cli.args.job_selection import act_on_each, add_jobs, check_selection, named_jobs, selected_jobs
from mam.cli.args.options import registry_of
from mam.jobs.status import ERROR
from mam.machine.person import user_at_host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    add_jobs(parser)
    parser.add_argument("--by", metavar="NAME", help="who looked; default: you, as USER@HOST")


def run(options: Options) -> int:
    check_selection(options)
    registry = registry_of(options)
    jobs = selected_jobs(options, registry, {ERROR})
    if not named_jobs(options) and not options.status:
        jobs = [job for job in jobs if registry.needs_look(registry.get(job))]
    by = options.by if options.by is not None else user_at_host()
    return act_on_each(jobs, lambda job: registry.mark_seen(job, by=by), as_json=options.json)
