"""Call jobs off, whoever holds them; prints each id.

Filters find jobs that have not ended.
"""

from __future__ import annotations

from mam.cli.options import add_attempt, registry_of
from mam.cli.several import add_jobs, check_choice, chosen, for_each, single_attempt
from mam.jobs.status import PENDING, RUNNING, WAITING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    add_jobs(parser)
    add_attempt(parser)
    parser.add_argument("--reason", metavar="TEXT", help="why")


def run(options: Options) -> int:
    check_choice(options)
    registry = registry_of(options)
    jobs = chosen(options, registry, {PENDING, WAITING, RUNNING})
    attempt = single_attempt(options, jobs)
    return for_each(
        jobs, lambda job: registry.cancel(job, attempt=attempt, reason=options.reason), as_json=options.json
    )
