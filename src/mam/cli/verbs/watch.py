"""Show the jobs live: what needs you first, then what runs, failed, waits, and is done.

On a terminal a table with keys; ? shows them. In a pipe, with --json or TERM=dumb, one line for each change of a status
from now on: time, id, from -> to, label and reason, separated by tabs. Filters choose what `mam list` shows with them;
for a change, --status means the one after it. With --everywhere the screen shows one line for each store, and Enter
opens it; in a pipe the store comes first.
"""

from __future__ import annotations

import os

from mam.cli.args.job_selection import add_filters, query_of
from mam.cli.args.options import registry_of
from mam.cli.render.streams import person_reads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser
    from mam.registry import Registry


def add_arguments(parser: Parser) -> None:
    add_filters(parser)
    parser.add_argument("--everywhere", action="store_true", help="every store that you have opened")


def run(options: Options) -> int:
    lines = options.json or not person_reads() or os.getenv("TERM", "dumb") == "dumb"
    if options.everywhere:
        from mam.cli.all_stores import watch_everywhere

        return watch_everywhere(options, lines=lines)
    registry = registry_of(options)
    query = query_of(options, registry)
    if lines:
        from mam.cli.watch.lines import Lines, follow

        return follow([Lines(registry, query, as_json=options.json)])
    from mam.cli.watch.screen import Screen

    return Screen(registry, query, _title(options, registry)).run()


def _title(options: Options, registry: Registry) -> str:
    chosen = [*(options.status or []), *([options.agent_session] if options.agent_session is not None else [])]
    chosen += [f"since {options.since}"] if options.since is not None else []
    address = registry.store.address
    home = os.path.expanduser("~")
    shown = f"~{address[len(home) :]}" if home != "/" and address.startswith(f"{home}/") else address
    return f"{', '.join(chosen)} in {shown}" if chosen else shown
