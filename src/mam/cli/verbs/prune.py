"""Move ended jobs into the archive.

This keeps lists short and the registry small. `get`, `result`, `logs`, `retry` and `list --archived` still find the
archived jobs, and a broker drops the retained last event of each. The entries of an archived job in the journal become
one. mam also removes the output of agents that is older than the settings allow.
"""

from __future__ import annotations

from mam.cli.args.options import registry_of
from mam.cli.render.streams import print_json, print_row, say
from mam.cli.send_event import add_broker, deliver
from mam.config.settings import load_config
from mam.errors import BadInput
from mam.jobs.input_rules import ID_PREFIX_SHOWN
from mam.util.clock import iso_second
from mam.util.human_time import parse_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser
    from mam.config.settings import Config
    from mam.jobs.record import Job
    from mam.jobs.status import Status
    from mam.maintenance.retention import Retention
    from mam.registry import Registry


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "--older-than",
        metavar="TIME",
        help="only jobs that ended longer ago than this: 12h, 7d (default: `retention_days` of the settings, 30 days)",
    )
    parser.add_argument("--status", action="append", metavar="WORD", help="only jobs with this status; repeatable")
    parser.add_argument("--dry-run", "-n", action="store_true", help="only print the number of jobs")
    add_broker(parser)


def run(options: Options) -> int:
    statuses = _statuses(options.status)
    config = load_config()
    options.older_than = options.older_than or f"{config.retention_days:g}d"
    seconds = parse_duration(options.older_than)
    registry = registry_of(options, config=config)
    from mam.maintenance.retention import Retention, newest_too_old

    now = registry.store.clock.now().wall_ms
    # Ends have a precision of a second: 0 includes the jobs that ended in this second.
    retention = Retention(before=iso_second(now - round(seconds * 1000) + 1000), statuses=statuses)
    counts = _counted(registry, retention) if options.dry_run else _pruned(options, registry, retention, config)
    _print_counts(counts, newest_too_old(registry, retention), options)
    return 0


def _pruned(options: Options, registry: Registry, retention: Retention, config: Config) -> dict[Status, int]:
    from mam.cli.render.progress import counting
    from mam.maintenance.retention import prune
    from mam.work.upload import expire, output_settings

    with counting("moved into the archive") as moved:
        pruned = prune(registry, retention, config.retention_days, moved)
    expire(registry.store, output_settings(config.output))
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
