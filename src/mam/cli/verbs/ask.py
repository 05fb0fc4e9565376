"""Ask a person, as the holder of a job; print the question's id.

  mam ask "Which database?" --choice sqlite --choice mysql
  mam ask "May I drop the table?" --deadline 2h --wait

Inside a job, MAM_JOB_ID names the job. With --wait, mam prints the answer and exits with 0; with 5 when --timeout is
over, and with 4 when the attempt ended first. A person answers with `mam answer`.
"""

from __future__ import annotations

from mam.cli.args.options import add_attempt, own_fence, own_job, registry_of
from mam.cli.render.streams import print_json, print_row, print_text
from mam.errors import AnswerTooLate, AttemptNeeded, BadInput
from mam.jobs.question import DENY, QUESTION, WITHDRAWN, Draft
from mam.util.human_time import parse_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser


def add_arguments(parser: Parser) -> None:
    parser.usage = "mam ask TEXT [--choice C]… [--default X] [--deadline T] [--wait]"
    parser.add_argument("word", nargs="?", metavar="TEXT", help="the question")
    parser.add_argument("--job", metavar="JOB", help="the job that asks (default: MAM_JOB_ID)")
    parser.add_argument("--choice", action="append", default=[], metavar="C", help="a possible answer; repeatable")
    parser.add_argument("--default", metavar="X", default=DENY, help="the answer when the deadline passes")
    parser.add_argument("--deadline", type=parse_duration, metavar="T", help="how long a person may take: 2h, 90s")
    parser.add_argument("--wait", action="store_true", help="wait for the answer and print it")
    parser.add_argument("--timeout", type=parse_duration, metavar="S", help="with --wait: how long to wait")
    add_attempt(parser)


def run(options: Options) -> int:
    from mam import questions
    from mam.cli.render.question import question_json

    registry = registry_of(options)
    text, options.word = options.word, None
    if text is None:
        raise BadInput(why="give the question: `mam ask TEXT`")
    job = registry.get(own_job(options))
    fence = own_fence(options, registry, job.job_id)
    if fence["attempt"] is None:
        raise AttemptNeeded(job=job.job_id)
    draft = Draft(
        kind=QUESTION, text=text, choices=tuple(options.choice), default=options.default,
        deadline_seconds=options.deadline,
    )  # fmt: skip
    asked = questions.ask(registry, job.job_id, draft, attempt=fence["attempt"], claim_id=fence["claim_id"])
    if not options.wait:
        if options.json:
            print_json(question_json(asked))
        else:
            print_row(asked.id)
        return 0
    closed = questions.wait_for_answer(registry, asked, options.timeout)
    if closed.state == WITHDRAWN:
        raise AnswerTooLate(question=asked.id, why="was withdrawn, because the attempt has ended")
    if options.json:
        print_json(question_json(asked.replace(question=closed)))
    else:
        print_text(f"{closed.answer}\n")
    return 0
