"""List the open questions of all jobs, oldest first, and the jobs for a person.

`mam answer` answers one. JSON has the questions only; `mam list --agent human` has the jobs.

  mam questions
  mam questions --watch    # also each new question, until Ctrl-C
"""

from __future__ import annotations

from mam import questions
from mam.cli.args.options import registry_of
from mam.cli.render.question import row_of, row_of_job
from mam.cli.render.streams import print_json_array, print_json_line, print_row, say, stdout_is_terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser
    from mam.questions import Asked
    from mam.registry import Registry


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--watch", action="store_true", help="print each new question too; one line each")


def run(options: Options) -> int:
    registry = registry_of(options)
    found = questions.open_now(registry)
    yours = [] if options.watch or options.json else questions.for_people(registry)
    if options.watch:
        return _watch(registry, found, as_json=options.json)
    if options.json:
        print_json_array(asked.to_json() for asked in found)
    elif not found and not yours:
        say("no open question")
    elif stdout_is_terminal():
        from mam.cli.render.table import print_table

        now = registry.store.clock.now()
        rows = [*(row_of(asked, now) for asked in found), *(row_of_job(job, now) for job in yours)]
        print_table(("QUESTION", "AGE", "AGENT", "LABEL", "KIND", "ASKS"), rows)
        say(f"`mam answer {rows[0][0]}` shows the whole question and asks for the answer")
    else:
        _print_rows(registry, found, as_json=False)
        for job in yours:
            print_row(*row_of_job(job, registry.store.clock.now()))
    return 0


def _watch(registry: Registry, found: list[Asked], *, as_json: bool) -> int:
    seen: set[str] = set()
    while True:
        offset = registry.store.end_offset()
        _print_rows(registry, [asked for asked in found if asked.id not in seen], as_json=as_json)
        seen = {asked.id for asked in found}
        registry.wait_for_change(offset, 3600)
        found = questions.open_now(registry)


def _print_rows(registry: Registry, found: list[Asked], *, as_json: bool) -> None:
    import sys

    for asked in found:
        if as_json:
            print_json_line(asked.to_json())
        else:
            print_row(*row_of(asked, registry.store.clock.now()))
    sys.stdout.flush()
