"""Select jobs by id or by filters, and act on each of them."""

from __future__ import annotations

import os

from mam.cli.render.streams import print_json_array, print_row, say, say_error
from mam.errors import BadInput, MamError, UnknownStatus
from mam.jobs.status import parse_status
from mam.stores.port import Query
from mam.util.human_time import parse_since

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mam.cli.args.parser import Options, Parser
    from mam.jobs.record import Job
    from mam.jobs.status import Status
    from mam.registry import Registry


def add_filters(parser: Parser) -> None:
    group = parser.add_argument_group("filters")
    group.add_argument(
        "--status", action="append", metavar="WORD", help="only these statuses; repeatable, or separated by commas"
    )
    group.add_argument("--label", "--agent-session", "-s", metavar="LABEL", help="only jobs with this label")
    group.add_argument("--since", metavar="T", help="only jobs registered since then: 2h, 3d, 2026-11-15T10:00:00Z")


def add_jobs(parser: Parser) -> None:
    parser.add_argument("words", nargs="*", metavar="JOB", help="ids, or unique prefixes of them")
    parser.add_argument("--job", action="append", metavar="JOB", help="a job, as JOB; repeatable")
    add_filters(parser)


def query_of(options: Options, registry: Registry) -> Query:
    check_label(options)
    now = registry.store.clock.now().wall_ms
    return Query(
        statuses=_statuses(options.status),
        label=options.label,
        since=None if options.since is None else parse_since(options.since, now),
    )


def check_label(options: Options) -> None:
    """No job has an empty label. An empty one is a script's unset variable and must not select nothing silently."""
    if options.label is not None and not options.label.strip():
        raise BadInput(why="the label is empty; omit --label to select every label")


def check_selection(options: Options, *, own: bool = False) -> None:
    """Check that the command names jobs or filters, before mam looks for a store."""
    check_label(options)
    if named_jobs(options) and _filtered(options):
        raise BadInput(why="give jobs or filters, not both")
    if not named_jobs(options) and not _filtered(options) and not (own and os.environ.get("MAM_JOB_ID")):
        raise BadInput(why="give the ids of jobs, or filters such as --status and --label")


def is_selection(options: Options) -> bool:
    """Whether the options name jobs or filters."""
    return bool(named_jobs(options)) or _filtered(options)


def selected_jobs(options: Options, registry: Registry, default_statuses: Iterable[Status]) -> list[str]:
    """The named jobs, otherwise those that match the filters, otherwise the job of this process.

    Without --status, the filters match only jobs in `default_statuses`.
    """
    if named_jobs(options):
        return list(dict.fromkeys(named_jobs(options)))
    if not _filtered(options):
        return [os.environ["MAM_JOB_ID"]]
    query = query_of(options, registry)
    if query.statuses is None:
        query = query.replace(statuses=frozenset(default_statuses))
    return [job.job_id for job in registry.select(query)]


def named_jobs(options: Options) -> list[str]:
    named: list[str] = options.words + (options.job or [])
    return named


def _filtered(options: Options) -> bool:
    return bool(options.status) or options.label is not None or options.since is not None


def act_on_each(jobs: Iterable[str], change: Callable[[str], Job], *, as_json: bool) -> int:
    """Apply `change` to each job. An error is printed and does not stop the rest; the first sets the exit code."""
    if not jobs:
        say("no job matches")
    code = 0
    done: list[Job] = []
    for job in jobs:
        try:
            changed = change(job)
        except MamError as error:
            say_error(error, as_json=as_json)
            code = code or error.exit_code
            continue
        if as_json:
            done.append(changed)
        else:
            print_row(changed.job_id)
    if as_json:
        print_json_array(job.to_json() for job in done)
    return code


def single_attempt(options: Options, jobs: list[str]) -> int | None:
    """Each job counts its own attempts, so --attempt fits one job only."""
    attempt: int | None = options.attempt
    if attempt is not None and len(jobs) > 1:
        raise BadInput(why="--attempt applies to one job; give exactly one")
    return attempt


def _statuses(words: list[str] | None) -> frozenset[Status] | None:
    if not words:
        return None
    try:
        return frozenset(parse_status(word.strip()) for text in words for word in text.split(","))
    except UnknownStatus as unknown:
        raise BadInput(why=str(unknown)) from None
