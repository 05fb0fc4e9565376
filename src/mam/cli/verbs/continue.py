"""Add work to the conversation of a job; print the id of the new job.

The agent continues in the same conversation and the same directory. The new job starts when the last job of the chain
has ended, with any outcome. It has the label and the settings of the old job, but artifacts and validation of its own.
Only the host that has the conversation can claim it. `mam run --continue JOB` runs it now; `mam retry --continue JOB`
does the same work again in the same conversation.

  mam continue JOB "also add tests"
  mam continue JOB --prompt-file review.md --artifact out.md
"""

from __future__ import annotations

import os

from mam.cli.args.continuing import add_continuation_options, continuation_choices, register_continuation
from mam.cli.args.options import registry_of
from mam.cli.args.text_files import read_text
from mam.cli.render.streams import print_job, say
from mam.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    parser.add_argument("words", nargs="*", metavar="JOB PROMPT", help="the job to continue, and the work to add")
    parser.add_argument("--prompt", metavar="TEXT", help="the work, as PROMPT")
    parser.add_argument("--prompt-file", metavar="FILE", help="read the work from a file, or from stdin for -")
    add_continuation_options(parser)


def run(options: Options) -> int:
    if os.environ.get("MAM_SOCKET"):
        raise BadInput(why="`mam continue` does not work inside a job; use `mam register`")
    name, prompt = _job_and_prompt(options)
    registry = registry_of(options)
    registration = register_continuation(registry, name, prompt, continuation_choices(options))
    job = registration.job
    if not registration.created:
        say(f"a job with the key {job.key} exists and is {job.status}")
    print_job(job, as_json=options.json, line=job.job_id)
    return 0


def _job_and_prompt(options: Options) -> tuple[str, str]:
    words = options.words
    given = [text for text in (*words[1:], options.prompt, options.prompt_file) if text is not None]
    if not words or len(given) != 1:
        raise BadInput(why='give a job and one prompt: mam continue JOB "also add tests"')
    return words[0], given[0] if options.prompt_file is None else read_text("prompt", options.prompt_file)
