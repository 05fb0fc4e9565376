"""Accept what other programs wrote into the record files.

For stores of files only.

  mam adopt JOB…        # the record files of these jobs
  mam adopt --all       # every record file that is new, changed or missing
  mam adopt --all -n    # only show what it would do

Such a write has no attempt, so it is unfenced. mam restores its own fields, rejects an illegal transition, and numbers
new jobs by `created_at`, then by id. Exit code 1: mam rejected a status or could not read a file.
"""

from __future__ import annotations

from mam.cli.args.options import registry_of
from mam.cli.render.streams import print_json, print_row, say
from mam.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser
    from mam.stores.files.adopt import Adopted
    from mam.stores.files.store import FilesStore

REFUSED = 1


def add_arguments(parser: Parser) -> None:
    parser.add_argument("jobs", nargs="*", metavar="JOB", help="ids, or unique prefixes of them")
    parser.add_argument("--all", action="store_true", help="every record file that differs from the registry")
    parser.add_argument("--dry-run", "-n", action="store_true", help="only show what would be adopted")


def run(options: Options) -> int:
    if bool(options.jobs) == bool(options.all):
        raise BadInput(why="give the jobs whose files to adopt, or --all")
    from mam.cli.render.progress import counting
    from mam.stores.files.adopt import adopt, foreign_ids
    from mam.stores.files.store import FilesStore

    registry = registry_of(options)
    store = registry.store
    if not isinstance(store, FilesStore):
        raise BadInput(why="only a store of files has record files to adopt")
    job_ids = foreign_ids(store) if options.all else [_named(store, text) for text in options.jobs]
    adopted: list[Adopted] = []
    with counting("record files adopted") as counted:
        for one in adopt(store, job_ids, dry_run=options.dry_run):
            adopted.append(one)
            counted(len(adopted))
    registry.catch_up()
    return _printed(adopted, options)


def _named(store: FilesStore, text: str) -> str:
    """A job of the registry, or a record file that the registry does not contain yet."""
    from mam.jobs import input_rules
    from mam.registry import CANDIDATES_SHOWN, only_match

    there = [job_id for job_id in store._open_mirror().records.ids() if job_id.startswith(text)] if text else []
    known = store.ids_with_prefix(text, CANDIDATES_SHOWN + 1) if input_rules.is_job_id(text) else []
    return only_match(text, sorted({*there, *known}), store.address)


def _printed(adopted: list[Adopted], options: Options) -> int:
    if options.json:
        print_json([one.as_dict() for one in adopted])
    else:
        for one in adopted:
            print_row(one.job_id, one.outcome, *([one.why] if one.why else []))
        if not adopted:
            say("no record file differs from what mam wrote")
    return REFUSED if any(one.outcome in ("refused", "unreadable") for one in adopted) else 0
