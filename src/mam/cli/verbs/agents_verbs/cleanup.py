"""Take away what is missing, malformed or expired; one line each: what became of it, id, reason.

`planned` (with --dry-run), `applied`, `kept`, `failed`. A removal that fails stops none of the others; the exit code
is then 1. No link is followed, and nothing outside of the directory is touched. Sessions that were stopped are kept.
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
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")
    parser.add_argument("--grace-seconds", "--grace", type=parse_duration, default=GRACE_SECONDS, metavar="T",
                        help="how long an expired record is left alone (default 300)")  # fmt: skip


def run(options: Options) -> int:
    report = clean_up(directory_of(options), dry_run=options.dry_run, grace_seconds=options.grace_seconds)
    if options.json:
        print_json(report.to_json())
    else:
        for word in ("planned", "applied", "kept", "failed"):
            for item in getattr(report, word):
                print_row(word, item.agent_id, item.reason)
    return 1 if report.failed else 0
