"""Show the overview of a job: why it is in its state, result, changes, checks, cost, and what to type next.

Without JOB, it shows the newest job of the store.
"""

from __future__ import annotations

from mam.cli.args.options import add_job, named_job, registry_of
from mam.cli.render.streams import print_json, stdout_is_terminal
from mam.errors import Refused
from mam.stores.port import Query

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser
    from mam.jobs.overview import Overview
    from mam.registry import Registry

PIPE_WIDTH = 100


def add_arguments(parser: Parser) -> None:
    add_job(parser)


def run(options: Options) -> int:
    registry = registry_of(options)
    named = options.word is not None or options.job is not None
    overview = registry.overview(named_job(options) if named else _newest(registry))
    if options.json:
        print_json(overview.to_json())
    else:
        _print(overview, registry.store.clock.now().wall_ms)
    return 0


def _newest(registry: Registry) -> str:
    for job in registry.select(Query()):
        return job.job_id
    raise Refused(why="There is no job yet; `mam run` and `mam register` register one.")


def _print(overview: Overview, now_ms: int) -> None:
    import sys

    from mam.cli.render.ansi import has_colours, to_ansi
    from mam.cli.render.overview import overview_lines

    width, colours = PIPE_WIDTH, False
    if stdout_is_terminal():
        from mam.cli.render.conversation_stream import terminal_width

        width, colours = terminal_width(), has_colours()
    for line in overview_lines(overview, now_ms, width):
        sys.stdout.write(to_ansi(line, colours) + "\n")
