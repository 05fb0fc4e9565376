"""Show the jobs, newest first.

In a pipe: id, status, agent, label, created_at and the prompt's first line, separated by tabs. When --limit leaves
jobs out, the last line, on stderr, says how many, up to a thousand; --json has them all, whatever --limit says. With
--everywhere the store comes first: in a column, or with --json around its jobs.
"""

from __future__ import annotations

import sys
from itertools import islice

from mam.cli.args.job_selection import add_filters, query_of
from mam.cli.args.options import number, registry_of
from mam.cli.render.streams import person_reads, put, put_json_array, say
from mam.cli.render.text import first_line
from mam.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mam.cli.args.parser import Options, Parser
    from mam.jobs.record import Job
    from mam.registry import Registry

ROWS_SHOWN = 50
COUNTED = 1_000
"""Of those that are not shown: nobody waits for the count of a million."""


def add_arguments(parser: Parser) -> None:
    add_filters(parser)
    parser.add_argument("--everywhere", action="store_true", help="in every store that you have opened")
    rows = f"jobs at most, 0 for all (default: {ROWS_SHOWN} on a terminal, all in a pipe); not with --json"
    parser.add_argument("--limit", type=number, metavar="N", help=rows)
    parser.add_argument("--archived", action="store_true", help="those that `mam prune` has moved away")


def run(options: Options) -> int:
    if options.limit is not None and options.limit < 0:
        raise BadInput(why="--limit takes the number of jobs to show, or 0 for all")
    if options.everywhere:
        from mam.cli.all_stores import list_everywhere

        return list_everywhere(options, _most(options.limit, ROWS_SHOWN if person_reads() else 0))
    registry = registry_of(options)
    query = query_of(options, registry)
    jobs = registry.select_archived(query) if options.archived else registry.select(query)
    if options.json:
        put_json_array(job.to_json() for job in jobs)
    elif person_reads():
        _table(registry, jobs, _most(options.limit, ROWS_SHOWN))
    else:
        _lines(jobs, _most(options.limit, 0))
    _say_pauses(registry, query.label)
    for found in registry.store.problems():
        say(f"{found.file}: {found.problem}")
    return 0


def _say_pauses(registry: Registry, label: str | None) -> None:
    """So that nobody wonders why nothing of what is listed is picked."""
    pauses = registry.store.pauses()
    if pauses:
        from mam.cli.verbs.pause import sentence, undo

        now = registry.store.clock.now()
        for pause in pauses:
            if pause.holds(now) and (label is None or pause.label in (None, label)):
                say(f"{sentence(pause)}; `{undo(pause)}` lifts it")


def _most(limit: int | None, default: int) -> int | None:
    """None for all of them, which is also what a number beyond all numbers of jobs means."""
    wanted = default if limit is None else limit
    return wanted if 0 < wanted < sys.maxsize else None


def _table(registry: Registry, jobs: Iterator[Job], most: int | None) -> None:
    shown = list(islice(jobs, most))
    if shown:
        from mam.cli.render.table import put_jobs

        put_jobs(shown, registry.store.clock.now(), registry.store.pauses())
        _say_more(jobs)
    else:
        say("no job matches; `mam register PROMPT --agent A` hands one out")


def _lines(jobs: Iterator[Job], most: int | None) -> None:
    for job in islice(jobs, most):
        put(job.job_id, job.status, job.agent, job.agent_session, job.created_at, first_line(job.prompt))
    _say_more(jobs)


def _say_more(jobs: Iterator[Job]) -> None:
    more = how_many_more(jobs)
    if more:
        say(f"{more}; --limit 0 shows all")


def how_many_more(jobs: Iterator[Job]) -> str:
    """Nothing when there are none."""
    more = sum(1 for _ in islice(jobs, COUNTED + 1))
    if not more:
        return ""
    return f"… and {more} more" if more <= COUNTED else f"… and more than {COUNTED:,} more"
