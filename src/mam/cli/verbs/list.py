"""Show the jobs, newest first.

In a pipe: id, status, agent, label, created_at and the first line of the prompt, separated by tabs. When --limit omits
jobs, the last line (on stderr) reports this. A terminal shows the host of each job if one ran elsewhere. --json
prints every job and ignores --limit. With --everywhere the first column is the store; with --json, each store holds its
jobs.
"""

from __future__ import annotations

import sys
from itertools import islice

from mam.cli.args.job_selection import add_filters, query_of
from mam.cli.args.options import number, registry_of
from mam.cli.render.streams import print_json_array, print_row, say, stdout_is_terminal
from mam.cli.render.text import first_line
from mam.errors import BadInput, MamError
from mam.registry.listing import JobFilter, check_filter, filtered_jobs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from mam.cli.args.known_stores import StoreRef
    from mam.cli.args.parser import Options, Parser
    from mam.jobs.record import Job
    from mam.registry import Registry

ROWS_SHOWN = 50
LEFT_OUT = "… older jobs are left out; --limit 0 shows all"


def add_arguments(parser: Parser) -> None:
    add_filters(parser)
    parser.add_argument("--host", metavar="NAME", help="only jobs that ran on this host; not with --everywhere")
    parser.add_argument("--agent", metavar="A", help="only jobs for this agent")
    parser.add_argument("--search", metavar="TEXT",
                        help="only jobs with this text in the prompt, the result or the reason")  # fmt: skip
    parser.add_argument("--everywhere", action="store_true", help="list every store that you have opened")
    rows = f"show at most N jobs, 0 for all (default: {ROWS_SHOWN} on a terminal, all in a pipe); not with --json"
    parser.add_argument("--limit", type=number, metavar="N", help=rows)
    parser.add_argument("--unseen", action="store_true", help="only failures that were neither retried nor seen")
    parser.add_argument("--archived", action="store_true", help="list the jobs that `mam prune` has archived")


def run(options: Options) -> int:
    if options.limit is not None and options.limit < 0:
        raise BadInput(why="--limit takes a number of jobs, or 0 for all")
    check_filter(unseen=options.unseen, archived=options.archived, statuses=bool(options.status))
    limit = _row_limit(options.limit, ROWS_SHOWN if stdout_is_terminal() else 0)
    if options.everywhere and options.host is not None:
        raise BadInput(why="give --everywhere or --host, not both")
    if options.everywhere:
        return _list_everywhere(options, limit)
    registry = registry_of(options)
    jobs = _jobs(registry, options)
    if options.json:
        print_json_array(job.to_json() for job in jobs)
    elif stdout_is_terminal():
        _print_table(registry, jobs, limit)
    else:
        _print_lines(jobs, limit)
    _say_pauses(registry, options.label)
    for found in registry.store.problems():
        say(f"{found.file}: {found.problem}")
    return 0


def _say_pauses(registry: Registry, label: str | None) -> None:
    """A pause explains why no worker claims a pending job of the list."""
    pauses = registry.store.pauses()
    if pauses:
        from mam.cli.verbs.pause import describe_pause, resume_command

        now = registry.store.clock.now()
        for pause in pauses:
            if pause.is_active(now) and (label is None or pause.label in (None, label)):
                say(f"{describe_pause(pause)}; `{resume_command(pause)}` ends the pause")


def _row_limit(limit: int | None, default: int) -> int | None:
    """None for no limit; islice accepts no number above sys.maxsize."""
    wanted = default if limit is None else limit
    return wanted if 0 < wanted < sys.maxsize else None


def _print_table(registry: Registry, jobs: Iterator[Job], limit: int | None) -> None:
    shown = list(islice(jobs, limit))
    if shown:
        from mam.cli.render.table import print_jobs

        print_jobs(shown, registry.store.clock.now(), registry.store.pauses())
        _say_more(jobs)
    else:
        say("no job matches; `mam register PROMPT --agent A` registers one")


def _print_lines(jobs: Iterator[Job], limit: int | None) -> None:
    for job in islice(jobs, limit):
        print_row(*_columns(job))
    _say_more(jobs)


def _columns(job: Job) -> tuple[str, ...]:
    return job.job_id, job.status, job.agent, job.agent_session, job.created_at, first_line(job.prompt)


def _say_more(jobs: Iterator[Job]) -> None:
    """One more row is read, not the rest: counting a million jobs takes too long."""
    if next(jobs, None) is not None:
        say(LEFT_OUT)


# -- every store -----------------------------------------------------------------------------------------------------


def _list_everywhere(options: Options, limit: int | None) -> int:
    from mam.cli.args.known_stores import open_known_stores, without_address

    if options.json:
        print_json_array(_store_json(ref, options) for ref in open_known_stores(options))
        return 0
    for number_, ref in enumerate(open_known_stores(options)):
        try:
            if stdout_is_terminal():
                _print_store(ref, options, limit, first=number_ == 0)
            elif ref.registry is None:
                say(f"{ref.address}: {ref.problem}")
            else:
                for job in islice(_jobs(ref.registry, options), limit):
                    print_row(ref.address, *_columns(job))
        except MamError as error:
            say(f"{ref.address}: {without_address(ref.address, error)}")
    return 0


def _jobs(registry: Registry, options: Options) -> Iterator[Job]:
    """The jobs that match the options, newest first."""
    wanted = JobFilter(
        query=query_of(options, registry), agent=options.agent, host=options.host, search=options.search,
        unseen=options.unseen, archived=options.archived,
    )  # fmt: skip
    return filtered_jobs(registry, wanted)


def _store_json(ref: StoreRef, options: Options) -> dict[str, Any]:
    from mam.cli.args.known_stores import without_address

    jobs, problem = [], ref.problem
    if ref.registry is not None:
        try:
            jobs = [job.to_json() for job in _jobs(ref.registry, options)]
        except MamError as error:
            problem = without_address(ref.address, error)
    return {"store": ref.address, "problem": problem, "jobs": jobs}


def _print_store(ref: StoreRef, options: Options, limit: int | None, *, first: bool) -> None:
    from rich.console import Console
    from rich.text import Text

    from mam.cli.render.table import print_jobs
    from mam.cli.render.text import one_line

    console = Console(highlight=False)
    if not first:
        console.print()
    console.print(Text(one_line(ref.display_name), style="bold"), no_wrap=True, overflow="ellipsis", crop=True)
    if ref.registry is None:
        console.print(Text(f"  {one_line(ref.problem or '')}", style="yellow"))
        return
    store, jobs = ref.registry.store, _jobs(ref.registry, options)
    shown = list(islice(jobs, limit))
    if not shown:
        console.print(Text("  no job matches", style="dim"))
        return
    print_jobs(shown, store.clock.now(), store.pauses())
    if next(jobs, None) is not None:
        console.print(Text(LEFT_OUT, style="dim"))
