"""Print one job's record as JSON, or one field of it.

mam get JOB --field prompt     # the text alone, for a script
"""

from __future__ import annotations

from mam.cli.options import add_job, own_job, registry_of
from mam.cli.output import put_exactly, put_json
from mam.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    add_job(parser, own=True)
    parser.add_argument("--field", metavar="NAME", help="print only this field; text is printed as it is")


def run(options: Options) -> int:
    job = own_job(options)
    record = registry_of(options).get(job).to_json()
    if options.field is None:
        put_json(record)
        return 0
    if options.field not in record:
        raise BadInput(why=f"a job has no field {options.field[:80]!r}; `mam get {job[:80]}` shows them")
    value = record[options.field]
    if isinstance(value, str) and not options.json:
        put_exactly(value)
    else:
        put_json(value)
    return 0
