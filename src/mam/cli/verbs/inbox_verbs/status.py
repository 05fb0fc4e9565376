"""Print the files of the inbox and their status.

In a pipe: id (or -), status, agent (or -) and file, separated by tabs. The ids are those of `mam list`. Older outcomes
are in ROOT/finished.
"""

from __future__ import annotations

from mam.cli.args.options import registry_of
from mam.cli.render.streams import print_json, print_row, say, stdout_is_terminal
from mam.cli.verbs.inbox_verbs.shared import add_place, mode_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser
    from mam.inbox.status import DroppedFile


def add_arguments(parser: Parser) -> None:
    add_place(parser)


def run(options: Options) -> int:
    from mam.config.settings import load_config
    from mam.inbox.settings import resolve_root
    from mam.inbox.status import list_files

    root = resolve_root(load_config(), options.root, mode_of(options))
    files = list_files(root, registry_of(options))
    if options.json:
        print_json({"root": root, "files": [file.as_dict() for file in files]})
        return 0
    if stdout_is_terminal() and files:
        _table(files)
    else:
        for file in files:
            print_row(file.job_id or "-", file.status, file.agent or "-", file.file)
    counts: dict[str, int] = {}
    for file in files:
        counts[file.status] = counts.get(file.status, 0) + 1
    what = ", ".join(f"{count} {status}" for status, count in counts.items()) or "nothing"
    say(f"{what} in {root}/inbox")
    return 0


def _table(files: list[DroppedFile]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from mam.cli.render.text import one_line

    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("JOB", "STATUS", "AGENT", "FILE"):
        table.add_column(name, no_wrap=name != "FILE")
    for file in files:
        words = ((file.job_id or "-")[:8], file.status, file.agent or "-", file.file)
        table.add_row(*(Text(one_line(word)) for word in words))
    Console(highlight=False).print(table)
