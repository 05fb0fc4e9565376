"""Print a job's record as JSON, or one field of it.

Inside a job, MAM_JOB_ID names the job.

  mam get JOB --field prompt    # the text only, for a script
"""

from __future__ import annotations

from mam.cli.args.options import add_job, job_registry, own_job
from mam.cli.render.streams import print_json, print_text, say
from mam.errors import BadInput, UnknownJob

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.options import AnyRegistry
    from mam.cli.args.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    add_job(parser, own=True)
    parser.add_argument("--field", metavar="NAME", help="print only this field; text without quotes")


def run(options: Options) -> int:
    job = own_job(options)
    registry = job_registry(options)
    try:
        record = registry.get(job).to_json()
    except UnknownJob:
        _say_file_problem(registry, job)
        raise
    _say_file_problem(registry, record["job_id"])
    if options.field is None:
        print_json(record)
        return 0
    if options.field not in record:
        raise BadInput(why=f"a job has no field {options.field[:80]!r}; `mam get {job[:80]}` prints all fields")
    value = record[options.field]
    if isinstance(value, str) and not options.json:
        print_text(value)
    else:
        print_json(value)
    return 0


def _say_file_problem(registry: AnyRegistry, job_id: str) -> None:
    """Report that another program changed the job's record file. A worker's door has no store."""
    look = getattr(getattr(registry, "store", None), "file_problem", None)
    found = look(job_id) if look is not None else None
    if found is not None:
        say(f"{found.file}: {found.problem}")
