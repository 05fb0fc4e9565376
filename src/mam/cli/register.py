"""Hand out a job; prints its id.

The first job also makes the store, unless there is one already (`mam where`).

  mam register "fix the flaky login test" --agent claude-code
  mam register --prompt-file task.md --agent codex -s tmux:codex --artifact report.md
  git diff | mam register --prompt-file - --agent claude-code --key "review-$(git rev-parse HEAD)"
"""

from __future__ import annotations

import os

from mam.cli.files import read_text
from mam.cli.options import number, registry_of
from mam.cli.output import put_job, say
from mam.cli.times import when, whole_seconds
from mam.clock import SystemClock
from mam.errors import BadInput
from mam.jobs.draft import draft_job
from mam.jobs.rules import check_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.parser import Options, Parser
    from mam.stores.port import Registration


def add_arguments(parser: Parser) -> None:
    parser.add_argument("word", nargs="?", metavar="PROMPT", help="what to do")
    parser.add_argument("--prompt", metavar="TEXT", help="the same")
    parser.add_argument("--prompt-file", metavar="FILE", help="read it from a file, or from stdin for -")
    parser.add_argument(
        "--agent", metavar="A", help="the kind of worker: claude-code, codex, opencode, shell, human, …"
    )
    parser.add_argument("--agent-session", "-s", metavar="LABEL", help="who shall pick it; default: the agent's name")
    parser.add_argument("--timeout", type=whole_seconds, metavar="S", default=3600,
                        help="how long an attempt may take, 0 for ever (default 3600)")  # fmt: skip
    parser.add_argument("--idle-timeout", type=whole_seconds, metavar="S", default=120,
                        help="silence after which it shows as stalled, 0 for never (default 120)")  # fmt: skip
    parser.add_argument("--artifact", action="append", default=[], metavar="PATH",
                        help="a file that must be there for the job to be complete; repeat it for more")  # fmt: skip
    parser.add_argument("--priority", type=number, metavar="N", default=0, help="higher is picked first")
    parser.add_argument("--at", metavar="T", help="not before: +2h, 90s, 2026-11-15T10:00:00Z")
    parser.add_argument("--max-retries", type=number, metavar="N", default=3,
                        help="how often `fail --retryable` tries again (default 3)")  # fmt: skip
    parser.add_argument("--key", metavar="K", help="the same key gives the same job back instead of a second one")
    parser.add_argument("--workdir", metavar="DIR", help="where the work is; default: here")


def run(options: Options) -> int:
    prompt, agent, workdir = _prompt(options), _agent(options), _workdir(options)
    choices = {
        "label": options.agent_session,
        "timeout_sec": options.timeout,
        "idle_timeout_sec": options.idle_timeout,
        "artifacts": options.artifact,
        "priority": options.priority,
        "due_ms": None if options.at is None else when(options.at, SystemClock().now().wall_ms),
        "max_retries": options.max_retries,
        "key": options.key,
        "workdir": workdir,
        "origin_host": os.uname().nodename,
    }
    # Said before a store is made for a job that no store would take.
    draft_job(job_id="draft", prompt=prompt, agent=agent, **choices)
    registration = registry_of(options, create=True).register(prompt=prompt, agent=agent, **choices)
    if not registration.created:
        _say_known(registration, prompt)
    put_job(registration.job, as_json=options.json, line=registration.job.job_id)
    return 0


def _prompt(options: Options) -> str:
    given = [text for text in (options.word, options.prompt, options.prompt_file) if text is not None]
    if len(given) != 1:
        what = "what shall be done? Give" if not given else "only one prompt is taken: give"
        raise BadInput(why=f"{what} PROMPT, --prompt TEXT or --prompt-file FILE")
    text: str = given[0] if options.prompt_file is None else read_text("prompt", options.prompt_file)
    return text


def _agent(options: Options) -> str:
    from mam.config import load_config

    agent: str | None = options.agent if options.agent is not None else load_config().default_agent
    if agent is None:
        raise BadInput(why="who shall do it? Add --agent claude-code (or codex, shell, human, …)")
    return agent


def _workdir(options: Options) -> str:
    try:
        workdir = os.path.abspath(options.workdir if options.workdir is not None else os.getcwd())
    except FileNotFoundError:
        raise BadInput(why="the working directory no longer exists; cd to one that does") from None
    check_text("workdir", workdir, 4096)
    if not os.path.isdir(workdir):
        raise BadInput(why=f"--workdir {workdir} is not a directory")
    return workdir


def _say_known(registration: Registration, prompt: str) -> None:
    job = registration.job
    differs = "" if job.prompt == prompt else "; it has another prompt, and this one was not stored"
    say(f"the key {job.key} was used before: this is that job, {job.status}{differs}")
