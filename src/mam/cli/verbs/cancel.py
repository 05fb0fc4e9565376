"""Cancel jobs, also those that a worker holds; print each id.

Filters match jobs that have not ended. --tree also cancels the jobs that these jobs registered.
"""

from __future__ import annotations

from mam.cli.args.job_selection import (
    act_on_each,
    add_jobs,
    check_selection,
    is_selection,
    selected_jobs,
    single_attempt,
)
from mam.cli.args.options import add_attempt, fence_of, registry_of
from mam.cli.render.confirm import is_confirmed
from mam.cli.render.streams import say
from mam.cli.send_event import add_broker, deliver
from mam.errors import BadInput, MamError
from mam.jobs.status import OPEN, RUNNING
from mam.stores.port import Query

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
    parser.add_argument("--reason", metavar="TEXT", help="the reason, stored with the job")
    parser.add_argument("--all", action="store_true", help="every job that has not ended, after a question")
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask")
    parser.add_argument("--tree", action="store_true", help="also the jobs that these jobs registered, at any depth")


def run(options: Options) -> int:
    if not options.all:
        check_selection(options)
    elif is_selection(options):
        raise BadInput(why="--all cancels every job; omit it to select by job or filter")
    registry = registry_of(options)
    jobs = _all_jobs(registry, ask=not options.yes) if options.all else selected_jobs(options, registry, OPEN)
    if jobs is None:
        say("nothing was cancelled")
        return 1
    attempt = single_attempt(options, jobs)

    cancelled: list[Job] = []

    def cancel(job: str) -> Job:
        fence = fence_of(attempt if job in jobs else None, registry, job)
        cancelled.append(registry.cancel(job, **fence, reason=options.reason))
        return cancelled[-1]

    code = act_on_each(_trees(registry, jobs) if options.tree and jobs else jobs, cancel, as_json=options.json)
    if cancelled:
        deliver(options, registry, cancelled[-1])  # this also sends every earlier entry of the journal
    return code


def _all_jobs(registry: Registry, *, ask: bool) -> list[str] | None:
    """None if the user does not agree."""
    found = list(registry.select(Query(statuses=OPEN)))
    running = sum(job.status is RUNNING for job in found)
    question = f"Cancel {len(found):,} {'job' if len(found) == 1 else 'jobs'}, {running:,} of them running?"
    return None if found and ask and not is_confirmed(question) else [job.job_id for job in found]


def _trees(registry: Registry, jobs: list[str]) -> Iterator[str]:
    """Each job, then its descendants: a cancelled job can register no more children.

    The search repeats until it finds nothing, because a child may register another job before it is cancelled.
    """
    from mam.work.children import open_descendants

    done: set[str] = set()
    for job in jobs:
        try:
            root = registry.get(job)
        except MamError:
            yield job  # cancelling it reports the error
            continue
        if not root.status.ended:
            yield job
        while found := [job_id for job_id in open_descendants(registry, root.job_id) if job_id not in done]:
            done.update(found)
            yield from (job_id for job_id in found if not registry.get(job_id).status.ended)
