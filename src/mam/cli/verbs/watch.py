"""Show the jobs live, those that need you first.

On a terminal: a table with keys; press ? for help. In a pipe, with --json or with TERM=dumb: one line for each status
change from now on: time, id, from -> to, label and reason, separated by tabs. The filters select the same jobs as those
of `mam list`; --status matches the status after the change. With --everywhere the screen shows one line for each store,
and Enter opens it; in a pipe, the first column is the store.
"""

from __future__ import annotations

import os

from mam.cli.args.job_selection import add_filters, query_of
from mam.cli.args.options import registry_of
from mam.cli.render.streams import say, stdout_is_terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser
    from mam.registry import Registry


def add_arguments(parser: Parser) -> None:
    add_filters(parser)
    parser.add_argument("--everywhere", action="store_true", help="watch every store that you have opened")


def run(options: Options) -> int:
    lines = options.json or not stdout_is_terminal() or os.getenv("TERM", "dumb") == "dumb"
    if options.everywhere:
        return _watch_everywhere(options, lines=lines)
    registry = registry_of(options)
    query = query_of(options, registry)
    if lines:
        from mam.cli.watch.change_lines import ChangePrinter, follow

        return follow([ChangePrinter(registry, query, as_json=options.json)])
    from mam.cli.watch.screen import Screen

    return Screen(registry, query, _title(options, registry)).run()


def _watch_everywhere(options: Options, *, lines: bool) -> int:
    from mam.cli.args.known_stores import open_known_stores

    refs = list(open_known_stores(options))
    if not lines:
        from mam.cli.watch.stores_screen import StoresScreen

        return StoresScreen(refs, lambda registry: query_of(options, registry)).run()
    from mam.cli.watch.change_lines import ChangePrinter, follow

    for ref in refs:
        if ref.registry is None:
            say(f"{ref.address}: {ref.problem}")
    return follow(
        [
            ChangePrinter(ref.registry, query_of(options, ref.registry), as_json=options.json, named=True)
            for ref in refs
            if ref.registry is not None
        ]
    )


def _title(options: Options, registry: Registry) -> str:
    from mam.cli.args.known_stores import abbreviate_home

    filters = [*(options.status or []), *([options.label] if options.label is not None else [])]
    filters += [f"since {options.since}"] if options.since is not None else []
    address = abbreviate_home(registry.store.address)
    return f"{', '.join(filters)} in {address}" if filters else address
