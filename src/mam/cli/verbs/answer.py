"""Answer a question of a job.

  mam answer 9f0c.1                # shows the question, then asks for the answer
  mam answer 9f0c allow            # the one open question of this job
  mam answer 9f0c deny --reason "not on main; use a branch"
  mam answer 9f0c postgres         # one of the choices, or any text

You can also answer a job for a person: the text is its result, and mam claims, checks and completes it in one act.

A permission takes allow, deny or always. always also allows the same for the rest of this job and its continuations.
The first answer wins: a later one, or one for another attempt, exits with 4 and changes nothing. At a terminal, mam
shows the whole question first.
"""

from __future__ import annotations

import sys

from mam import questions
from mam.cli.args.options import registry_of
from mam.cli.render.question import how_to_answer, short_id, what_always_covers, whole_text
from mam.cli.render.streams import print_job, print_json, print_row, say
from mam.errors import BadInput
from mam.jobs.draft import HUMAN
from mam.jobs.human_answer import HumanAnswer
from mam.jobs.input_rules import REASON_LIMIT, TEXT_LIMIT, check_text
from mam.jobs.question import PERMISSION, open_questions
from mam.jobs.question_acts import Answer
from mam.jobs.status import RUNNING
from mam.machine.agent_tree import check_outside_agents
from mam.machine.person import user_at_host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser
    from mam.jobs.record import Job
    from mam.questions import Asked
    from mam.registry import Registry


def add_arguments(parser: Parser) -> None:
    parser.usage = "mam answer QUESTION [ANSWER] [--reason TEXT]"
    parser.add_argument(
        "words", nargs="*", metavar="QUESTION [ANSWER]",
        help="JOB.NUMBER, or a job with one open question; then allow, deny, always, a choice or a text",
    )  # fmt: skip
    parser.add_argument("--reason", metavar="TEXT", help="what the agent should know; it reads this")
    parser.add_argument(
        "--digest", metavar="SHA256", help="answer only if the question has this digest (`mam questions --json`)"
    )


def run(options: Options) -> int:
    check_outside_agents("answer")
    registry = registry_of(options)
    if not options.words:
        raise BadInput(why="give a question: JOB.NUMBER; `mam questions` lists them")
    reason = None if options.reason is None else check_text("reason", options.reason, REASON_LIMIT)
    job = _job_for_person(registry, options.words[0])
    if job is not None:
        return _answer_job(options, registry, job, reason)
    asked = questions.find(registry, options.words[0])
    _show(asked)
    answer = " ".join(options.words[1:]) or _prompt_for(asked)
    question = asked.question
    given = Answer(
        number=question.number, attempt=question.attempt, digest=options.digest or question.digest, answer=answer,
        by=user_at_host(), reason=reason,
    )  # fmt: skip
    closed = questions.answer(registry, asked.job.job_id, given)
    if options.json:
        print_json(closed.to_json())
    else:
        print_row(f"{short_id(closed)} {closed.question.answer}")
    return 0


def _job_for_person(registry: Registry, text: str) -> Job | None:
    """The job that `text` names, if it is for a person; a question of it has a number."""
    job = None if "." in text else registry.get(text)
    return job if job is not None and job.agent == HUMAN and not open_questions(job) else None


def _answer_job(options: Options, registry: Registry, job: Job, reason: str | None) -> int:
    """The text completes the job, and `deny` ends it in error."""
    if sys.stderr.isatty():
        from mam.cli.render.question import INDENT
        from mam.cli.render.text import many_lines

        sys.stderr.write("".join(f"{INDENT}{line}\n" for line in many_lines(job.prompt).split("\n")))
    answer = " ".join(options.words[1:])
    if not answer:
        answer = _read_answer(f"`mam answer {job.job_id[:8]} TEXT`", "TEXT|deny")
    given = HumanAnswer(answer=check_text("answer", answer, TEXT_LIMIT), by=user_at_host(), seen=job, reason=reason)
    ended = questions.answer_human(registry, given)
    line = "reported; the worker checks it now" if ended.status == RUNNING else ended.status
    print_job(ended, as_json=options.json, line=line)
    return 0


def _show(asked: Asked) -> None:
    """Shows a person at a terminal everything that is asked, also if the command names the answer."""
    if not sys.stderr.isatty():
        return
    from shutil import get_terminal_size

    sys.stderr.write(f"{whole_text(asked, get_terminal_size().columns)}\n")
    if not asked.question.is_open:
        say(f"question {short_id(asked)} is {asked.question.state}")


def _prompt_for(asked: Asked) -> str:
    how = how_to_answer(asked.question)
    if asked.question.kind == PERMISSION and sys.stderr.isatty():
        say(what_always_covers(asked.question))
    answer = _read_answer(f"`mam answer {short_id(asked)} {how}`", how)
    shortcuts = {"a": "allow", "d": "deny", "A": "always"} if asked.question.kind == PERMISSION else {}
    return shortcuts.get(answer, answer)


def _read_answer(command: str, how: str) -> str:
    if not sys.stdin.isatty() or not sys.stderr.isatty():
        raise BadInput(why=f"give the answer: {command}")
    sys.stderr.write(f"{how}: ")
    sys.stderr.flush()
    answer = sys.stdin.readline().strip()
    if not answer:
        raise BadInput(why="no answer was given; the question stays open")
    return answer
