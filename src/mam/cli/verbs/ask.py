"""Ask a person, as the holder of a job; print the question's id.

  mam ask "Which database?" --choice sqlite --choice mysql
  mam ask "May I drop the table?" --deadline 2h --wait
  mam ask "It reads." --tool Read --input '{"path": "a"}'

Inside a job, MAM_JOB_ID names the job, and the question goes to its worker. With --wait, mam prints the answer, and on
stderr its reason, and exits with 0; with 5 when --timeout is over, and with 4 when the attempt ended first. A person
answers with `mam answer`. With --tool, mam asks for a permission, which the user's rules may decide: the answer is
allow or deny.
"""

from __future__ import annotations

import os

from mam import questions
from mam.cli.args.options import add_attempt, job_registry, own_fence, own_job
from mam.cli.render.streams import print_json, print_row, print_text, say
from mam.errors import AnswerTooLate, AttemptNeeded, BadInput
from mam.jobs.question import ALLOW, ALWAYS, DENY, PERMISSION, QUESTION, WITHDRAWN, Draft, check_draft
from mam.questions import Asked
from mam.util.human_time import parse_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.cli.args.options import AnyRegistry
    from mam.cli.args.parser import Options, Parser
    from mam.jobs.acts import Fence
    from mam.jobs.question import Question
    from mam.jobs.record import Job, Json
    from mam.registry import Registry

    Wait = Callable[[float | None], Question]


def add_arguments(parser: Parser) -> None:
    parser.usage = "mam ask TEXT [--choice C]… [--default X] [--deadline T] [--wait]"
    parser.add_argument("word", nargs="?", metavar="TEXT", help="the question")
    parser.add_argument("--job", metavar="JOB", help="the job that asks (default: MAM_JOB_ID)")
    parser.add_argument("--tool", metavar="T", help="ask for the permission to use this tool")
    parser.add_argument("--input", metavar="JSON", help="with --tool: its exact input, a JSON object")
    parser.add_argument("--choice", action="append", default=[], metavar="C", help="a possible answer; repeatable")
    parser.add_argument("--default", metavar="X", default=DENY, help="the answer when the deadline passes")
    parser.add_argument("--deadline", type=parse_duration, metavar="T", help="how long a person may take: 2h, 90s")
    parser.add_argument("--wait", action="store_true", help="wait for the answer and print it")
    parser.add_argument("--timeout", type=parse_duration, metavar="S", help="with --wait: how long to wait")
    add_attempt(parser)


def run(options: Options) -> int:
    registry = job_registry(options)
    text, options.word = options.word, None
    if text is None:
        raise BadInput(why="give the question: `mam ask TEXT`")
    job = registry.get(own_job(options))
    fence = own_fence(options, registry, job.job_id)
    if fence["attempt"] is None:
        raise AttemptNeeded(job=job.job_id)
    draft = check_draft(
        Draft(
            kind=QUESTION if options.tool is None else PERMISSION, text=text, tool=options.tool,
            input=_tool_input(options), choices=tuple(options.choice), default=options.default,
            deadline_seconds=options.deadline,
        )
    )  # fmt: skip
    asked, wait = _ask(registry, job, draft, fence)
    if options.wait and asked.question.is_open:
        asked = asked.replace(question=wait(options.timeout))
        if asked.question.state == WITHDRAWN:
            raise AnswerTooLate(question=asked.id, why="was withdrawn, because the attempt has ended")
    if options.json:
        print_json(asked.to_json())
    elif asked.question.is_open:
        print_row(asked.id)
    else:
        _print_answer(asked.question)
    return 0


def _print_answer(question: Question) -> None:
    """For an agent: what it may do once is allow, also if the person answered `always`."""
    if question.reason:
        say(question.reason)
    print_text(f"{ALLOW if question.answer == ALWAYS and question.kind == PERMISSION else question.answer}\n")


def _tool_input(options: Options) -> Json | None:
    if options.input is None:
        return None
    if options.tool is None:
        raise BadInput(why="--input goes with --tool")
    from mam.util.strict_json import safe_json

    try:
        given = safe_json(options.input)
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise BadInput(why="""--input must be a JSON object, such as '{"command": "git push"}'""")
    return given


def _ask(registry: AnyRegistry, job: Job, draft: Draft, fence: Fence) -> tuple[Asked, Wait]:
    """The question, and how to wait for it: at the door of the worker, otherwise at the store."""
    from mam.door_client import DoorClient, NotHere

    if isinstance(registry, DoorClient):
        from mam.work.asking.at_door import DoorAsker

        try:
            asker = DoorAsker(registry, job=job.job_id, **fence)
            asked = Asked(job=job, question=asker.open(draft))
            return asked, lambda timeout: asker.wait_until_closed(asked.question.number, timeout)
        except NotHere as refusal:
            registry = registry.open_store(refusal)
    store = registry
    asked = Asked(job=job, question=_open_at_store(store, job.job_id, draft, fence))
    return asked, lambda timeout: questions.wait_for_answer(store, asked, timeout, fence)


def _open_at_store(store: Registry, job_id: str, draft: Draft, fence: Fence) -> Question:
    """No worker runs this job, so the rules of this host decide here."""
    from mam.config.settings import load_config
    from mam.work.asking.in_worker import WorkerAsker
    from mam.work.asking.policy import policy_of
    from mam.work.masking import known_secrets

    policy = policy_of(load_config(), known_secrets(os.environ), say)
    return WorkerAsker(store, job_id, fence["attempt"] or 0, fence["claim_id"], policy).open(draft)
