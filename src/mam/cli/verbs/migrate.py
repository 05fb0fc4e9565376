"""Copy a registry into another store of any kind.

FROM and TO are addresses as for --store; TO must be new or empty. FROM stays unchanged. FROM may also be a directory of
another program: `.hermes/jobs`, a queue of `job.json` and `state` files, or `live_agents`. TO cannot be opened before
mam has copied and compared everything. After an interruption, run the same command again: it continues.
"""

from __future__ import annotations

import os

from mam.cli.render.streams import print_json, print_row, say
from mam.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser
    from mam.location.stores import StoreLocation
    from mam.maintenance.migration import Moved
    from mam.maintenance.source import Source


def add_arguments(parser: Parser) -> None:
    addresses = "the source (a store or a directory of another program) and a new or empty store"
    parser.add_argument("words", nargs="*", metavar="FROM TO", help=addresses)
    parser.add_argument("--dry-run", "-n", action="store_true", help="only read FROM and print what would be copied")


def run(options: Options) -> int:
    from mam.maintenance.old_agents import is_agents

    if options.store is not None or options.registry_dir is not None:
        raise BadInput(why="`mam migrate FROM TO` does not accept --store")
    if len(options.words) != 2:
        raise BadInput(why="give FROM and TO: `mam migrate .mam/jobs sqlite:///home/me/jobs.db`")
    origin, target = map(_located, options.words)
    if origin.address == target.address:
        raise BadInput(why="FROM and TO are the same")
    if is_agents(origin.path):
        return _print_report(_agents(options, origin, target), options, "sessions")
    return _print_report(_jobs(options, origin, target), options, "jobs")


def _jobs(options: Options, origin: StoreLocation, target: StoreLocation) -> Moved:
    from mam.cli.render.progress import counting
    from mam.config.settings import load_config
    from mam.location.stores import catch_up_log, keep_out_of_git, open_store
    from mam.maintenance.destination import begin_import
    from mam.maintenance.migration import copy
    from mam.maintenance.source import open_source

    config = load_config()
    source = open_source(origin, lambda located: open_store(located, config))
    if options.dry_run:
        return _planned(source)
    destination = begin_import(target)
    with counting("copied", len(source.ids())) as advance:
        moved = copy(source, destination.store, advance)
    destination.finish()
    keep_out_of_git(target)
    with counting("written to the audit log", moved.jobs) as advance:
        catch_up_log(target, config, advance)  # otherwise the first operation there would have to do it
    return moved


def _planned(source: Source) -> Moved:
    from mam.maintenance.migration import Moved

    ids = [job_id for job_id in source.ids() if source.read(job_id) is not None]
    archived = sum(1 for _kept in source.archive())
    return Moved(jobs=len(ids), archived=archived, left_behind=source.problems())


def _agents(options: Options, origin: StoreLocation, target: StoreLocation) -> Moved:
    from mam.location.ownership import check_path_ownership
    from mam.location.stores import FILES, check_ownership
    from mam.maintenance.destination import FILLING
    from mam.maintenance.old_agents import copy_agents, plan_agents, root_of

    for place in (origin, target):
        check_ownership(place)
    check_path_ownership(os.path.realpath(root_of(target.path)) + FILLING)
    if target.kind != FILES:
        raise BadInput(
            why="sessions can be copied only into a directory; on a server, each session publishes its own record"
        )
    return plan_agents(origin.path) if options.dry_run else copy_agents(origin.path, target.path)


def _print_report(moved: Moved, options: Options, what: str) -> int:
    """Exit code 1 if something was not copied; each such file is named, and the rest is in place."""
    if options.json:
        left_behind = [found.as_dict() for found in moved.left_behind]
        print_json(
            {"dry_run": options.dry_run, what: moved.jobs, "archived": moved.archived, "left_behind": left_behind}
        )
    else:
        verb = "would be copied" if options.dry_run else "copied and compared"
        archived = f", {moved.archived:,} of them archived" if moved.archived else ""
        count = moved.jobs + moved.archived
        print_row(f"{count:,} {what if count != 1 else what[:-1]} {verb}{archived}")
    for found in moved.left_behind:
        say(f"not copied: {found.file}: {found.problem}")
    if moved.left_behind and not options.dry_run:
        say("to copy these too, repair them and migrate into another new store; this store is in use now")
    return 1 if moved.left_behind else 0


def _located(text: str) -> StoreLocation:
    from mam.location.stores import parse_address

    return parse_address(text, "migrate")
