"""Rebuild the database of a files store from its record files.

Use this if the database is lost, damaged or older than the record files (after restoring a backup). mam keeps the old
database in `.store/aside` and prints what the record files do not contain.
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
    """No arguments of its own."""


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
        say(f"not read: {problem}")
    say(f"lost, because record files do not contain it: {', '.join(rebuilt.unknown)}")
    if rebuilt.without_file:
        say(f"only the old database contains these jobs: {', '.join(rebuilt.without_file)}")
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
