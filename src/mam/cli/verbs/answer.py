"""Answer a question of a job.

  mam answer 9f0c.1                # shows the question, then asks for the answer
  mam answer 9f0c allow            # the one open question of this job
  mam answer 9f0c deny --reason "not on main; use a branch"
  mam answer 9f0c postgres         # one of the choices, or any text

A permission takes allow, deny or always. always also allows the same for the rest of this job and its continuations.
The first answer wins: a later one, or one for another attempt, exits with 4 and changes nothing.
"""

from __future__ import annotations

import os
import sys

from mam import questions
from mam.cli.args.options import registry_of
from mam.cli.render.question import short_id, whole_text
from mam.cli.render.streams import print_json, print_row, say
from mam.errors import BadInput
from mam.jobs.input_rules import REASON_LIMIT, check_text
from mam.jobs.question import PERMISSION
from mam.jobs.question_acts import Answer
from mam.machine.agent_tree import check_outside_agents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser
    from mam.questions import Asked


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
    asked = questions.find(registry, options.words[0])
    answer = " ".join(options.words[1:]) or _prompt_for(asked)
    reason = None if options.reason is None else check_text("reason", options.reason, REASON_LIMIT)
    question = asked.question
    given = Answer(
        number=question.number, attempt=question.attempt, digest=options.digest or question.digest, answer=answer,
        by=answerer(), reason=reason,
    )  # fmt: skip
    closed = questions.answer(registry, asked.job.job_id, given)
    if options.json:
        print_json(closed.to_json())
    else:
        print_row(f"{short_id(closed)} {closed.question.answer}")
    return 0


def answerer() -> str:
    """user@host of the person at this terminal."""
    import getpass

    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{os.uname().nodename}"


def _prompt_for(asked: Asked) -> str:
    """Shows a person at a terminal everything that is asked, and reads the answer."""
    if not sys.stdin.isatty() or not sys.stderr.isatty():
        raise BadInput(why=f"give the answer: `mam answer {short_id(asked)} {_how(asked)}`")
    if not asked.question.is_open:
        say(f"question {short_id(asked)} is {asked.question.state}")
    sys.stderr.write(f"{whole_text(asked)}\n{_how(asked)}: ")
    sys.stderr.flush()
    answer = sys.stdin.readline().strip()
    shortcuts = {"a": "allow", "d": "deny", "A": "always"} if asked.question.kind == PERMISSION else {}
    answer = shortcuts.get(answer, answer)
    if not answer:
        raise BadInput(why="no answer was given; the question stays open")
    return answer


def _how(asked: Asked) -> str:
    if asked.question.kind == PERMISSION:
        return "allow|deny|always"
    return "|".join(asked.question.choices) or "TEXT"
