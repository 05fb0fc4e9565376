"""Make the database of a files store anew from its record files.

For a store whose database is lost, damaged, or older than its record files (a restored backup). The old database is
kept in `.store/aside`. mam reports what the record files do not hold.
"""

from __future__ import annotations

from mam.cli.render.streams import print_json, print_row, say
from mam.config.settings import load_config
from mam.errors import BadInput
from mam.location.stores import FILES, catch_up_log, check_ownership, locate
from mam.util.clock import SystemClock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    """None of its own."""


def run(options: Options) -> int:
    config = load_config()
    located = locate(options.store, options.registry_dir, config)
    if located.kind != FILES:
        raise BadInput(why="only a store of files can be rebuilt from its record files")
    from mam.stores.files.rebuild import rebuild

    check_ownership(located)
    rebuilt = rebuild(located.path, SystemClock(), config.lock_wait_seconds)
    catch_up_log(located, config)
    for problem in rebuilt.made.unreadable:
        say(f"left alone: {problem}")
    say(f"record files do not hold these, and they are lost: {', '.join(rebuilt.unknown)}")
    if rebuilt.without_file:
        say(f"only the old database has these jobs: {', '.join(rebuilt.without_file)}")
    if rebuilt.kept is not None:
        say(f"the old database is {rebuilt.kept}")
    if options.json:
        print_json(
            {"store": located.shown, "jobs": rebuilt.made.jobs, "unreadable": rebuilt.made.unreadable,
             "unknown": rebuilt.unknown, "without_file": rebuilt.without_file, "kept": rebuilt.kept}
        )  # fmt: skip
    else:
        print_row(f"{located.shown}: {rebuilt.made.jobs} jobs")
    return 0
