"""End a job as completed, with its result; print the status.

mam rejects this while an expected artifact is missing, so that the worker can add it. Under `mam worker`, the job ends
when the worker has checked the outcome.

  mam complete JOB --result "fixed the flaky test"
  make report | mam complete JOB --result-file -
"""

from __future__ import annotations

from mam.cli.args.options import add_attempt, add_job, job_registry, own_fence, own_job
from mam.cli.args.text_files import read_text
from mam.cli.render.streams import print_job
from mam.cli.send_event import add_broker, deliver
from mam.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    add_job(parser, own=True)
    add_attempt(parser)
    add_broker(parser)
    parser.add_argument("--result", metavar="TEXT", help="the result, which `mam result` prints")
    parser.add_argument("--result-file", metavar="FILE", help="read the result from a file, or from stdin for -")


def run(options: Options) -> int:
    name = own_job(options)
    if options.result is not None and options.result_file is not None:
        raise BadInput(why="give --result TEXT or --result-file FILE, not both")
    result = options.result if options.result_file is None else read_text("result", options.result_file)
    registry = job_registry(options)
    job = registry.complete(name, **own_fence(options, registry, name), result=result)
    line = "reported; the worker checks it now" if job.status == "running" else job.status
    print_job(job, as_json=options.json, line=line)
    deliver(options, registry, job)
    return 0
