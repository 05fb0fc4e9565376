"""Call jobs off, whoever holds them; prints each id.

Filters find jobs that have not ended. With --tree the jobs that they handed out are called off too.
"""

from __future__ import annotations

from mam.cli.args.job_selection import act_on_each, add_jobs, check_selection, selected_jobs, single_attempt
from mam.cli.args.options import add_attempt, fence_of, registry_of
from mam.cli.send_event import add_broker, deliver
from mam.errors import MamError
from mam.jobs.status import PENDING, RUNNING, WAITING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.cli.args.parser import Options, Parser
    from mam.jobs.record import Job
    from mam.registry import Registry


def add_arguments(parser: Parser) -> None:
    add_jobs(parser)
    add_attempt(parser)
    add_broker(parser)
    parser.add_argument("--reason", metavar="TEXT", help="why")
    parser.add_argument("--tree", action="store_true", help="and all jobs that were registered from inside them")


def run(options: Options) -> int:
    check_selection(options)
    registry = registry_of(options)
    jobs = selected_jobs(options, registry, {PENDING, WAITING, RUNNING})
    attempt = single_attempt(options, jobs)

    cancelled: list[Job] = []

    def cancel(job: str) -> Job:
        fence = fence_of(attempt if job in jobs else None, registry, job)
        cancelled.append(registry.cancel(job, **fence, reason=options.reason))
        return cancelled[-1]

    code = act_on_each(_trees(registry, jobs) if options.tree and jobs else jobs, cancel, as_json=options.json)
    if cancelled:
        deliver(options, registry, cancelled[-1])  # with it go all that are in the journal before it
    return code


def _trees(registry: Registry, jobs: list[str]) -> Iterator[str]:
    """Each job, and when it is called off all below it: who has lost its claim hands out nothing new.

    It is looked again until nothing is found, since a child may have handed out another before its own turn came.
    """
    from mam.work.children import open_descendants

    done: set[str] = set()
    for job in jobs:
        try:
            root = registry.get(job)
        except MamError:
            yield job  # whoever calls it off says what is wrong with it
            continue
        if not root.status.ended:
            yield job
        while found := [job_id for job_id in open_descendants(registry, root.job_id) if job_id not in done]:
            done.update(found)
            yield from (job_id for job_id in found if not registry.get(job_id).status.ended)
