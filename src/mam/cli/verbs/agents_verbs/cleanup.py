"""Remove records that are missing, malformed or expired.

Each line has the action, the id and the reason. The action is `planned` (with --dry-run), `applied`, `kept` or
`failed`. A failed removal does not stop the others; the exit code is then 1. mam follows no links, changes nothing
outside the directory and keeps stopped sessions.
"""

from __future__ import annotations

from mam.agents.cleanup import clean_up
from mam.agents.lease import GRACE_SECONDS
from mam.cli.render.streams import print_json, print_row
from mam.cli.verbs.agents_verbs.common import directory_of
from mam.util.human_time import parse_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only print what would be removed")
    parser.add_argument("--grace-seconds", "--grace", type=parse_duration, default=GRACE_SECONDS, metavar="T",
                        help="how long mam keeps an expired record (default 300)")  # fmt: skip
    parser.add_argument("--no-tmux-check", action="store_true", help="accepted: mam never removes by what tmux shows")
    parser.add_argument("--print-json", action="store_true", help="the same as --json")


def run(options: Options) -> int:
    report = clean_up(directory_of(options), dry_run=options.dry_run, grace_seconds=options.grace_seconds)
    if options.json or options.print_json:
        print_json(report.to_json())
    else:
        for word in ("planned", "applied", "kept", "failed"):
            for item in getattr(report, word):
                print_row(word, item.agent_id, item.reason)
    return 1 if report.failed else 0
