"""Move ended jobs into the archive.

This keeps lists short and the registry small; mam deletes nothing. `get`, `result`, `logs`, `retry` and
`list --archived` still find archived jobs. A broker drops the retained last event of each.
"""

from __future__ import annotations

from mam.cli.args.options import registry_of
from mam.cli.render.streams import print_json, print_row, say
from mam.cli.send_event import add_broker, deliver
from mam.errors import BadInput
from mam.jobs.input_rules import ID_PREFIX_SHOWN
from mam.util.clock import iso_second
from mam.util.human_time import parse_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser
    from mam.jobs.record import Job
    from mam.jobs.status import Status
    from mam.maintenance.retention import Retention
    from mam.registry import Registry

OLD = "30d"


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "--older-than",
        metavar="TIME",
        default=OLD,
        help=f"only jobs that ended longer ago than this: 12h, 7d (default: {OLD})",
    )
    parser.add_argument("--status", action="append", metavar="WORD", help="only jobs with this status; repeatable")
    parser.add_argument("--dry-run", "-n", action="store_true", help="only print the number of jobs")
    add_broker(parser)


def run(options: Options) -> int:
    seconds = parse_duration(options.older_than)
    statuses = _statuses(options.status)
    registry = registry_of(options)
    from mam.maintenance.retention import Retention, newest_too_old

    now = registry.store.clock.now().wall_ms
    # Ends have a precision of a second: 0 includes the jobs that ended in this second.
    retention = Retention(before=iso_second(now - round(seconds * 1000) + 1000), statuses=statuses)
    counts = _counted(registry, retention) if options.dry_run else _pruned(options, registry, retention)
    _print_counts(counts, newest_too_old(registry, retention), options)
    return 0


def _pruned(options: Options, registry: Registry, retention: Retention) -> dict[Status, int]:
    from mam.cli.render.progress import counting
    from mam.maintenance.retention import prune

    with counting("moved into the archive") as moved:
        pruned = prune(registry, retention, moved)
    if pruned.last is not None:
        deliver(options, registry, pruned.last)  # this also sends every earlier entry of the journal
    return pruned.counts


def _counted(registry: Registry, retention: Retention) -> dict[Status, int]:
    from mam.maintenance.retention import counted

    return counted(registry, retention)


def _print_counts(counts: dict[Status, int], newest: Job | None, options: Options) -> None:
    what = "would be moved" if options.dry_run else "moved"
    if options.json:
        print_json({"dry_run": options.dry_run, "moved": {status.value: count for status, count in counts.items()}})
    elif not counts:
        say(f"no{'' if newest is None else ' other'} job ended more than {options.older_than} ago")
    else:
        for status, count in sorted(counts.items()):
            print_row(f"{count:,} {status} {what}")
    if newest is not None:
        say(f"job {newest.job_id[:ID_PREFIX_SHOWN]} stays: it is the newest, and its number must not be assigned again")


def _statuses(words: list[str] | None) -> frozenset[Status]:
    from mam.jobs.status import parse_status
    from mam.maintenance.retention import ENDED

    if not words:
        return ENDED
    statuses = frozenset(parse_status(word.strip()) for given in words for word in given.split(","))
    if not statuses <= ENDED:
        raise BadInput(why=f"only ended jobs are archived: --status takes {', '.join(sorted(ENDED))}")
    return statuses
