"""Print one job's record as JSON."""

from __future__ import annotations

from mam.cli.options import add_job, own_job, registry_of
from mam.cli.output import put_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    add_job(parser, own=True)


def run(options: Options) -> int:
    job = own_job(options)
    put_json(registry_of(options).get(job).to_json())
    return 0
