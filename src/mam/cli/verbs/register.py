"""Register a job; print its id.

The first job also creates the store, unless one exists (`mam where`).

  mam register "fix the flaky test" --agent claude-code
  mam register --prompt-file task.md --agent codex \\
      -s tmux:codex --artifact report.md
  mam register "write the release notes" --agent codex \\
      --after 3fa2b1c9 --exclusive changelog
  git diff | mam register --prompt-file - --agent codex \\
      --key "review-$(git rev-parse HEAD)"
"""

from __future__ import annotations

from mam.cli.args.job_options import add_job_options, choices_of, prompt_of, register
from mam.cli.render.streams import print_job, say
from mam.config.settings import load_config
from mam.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser
    from mam.config.settings import Config
    from mam.stores.port import Registration


def add_arguments(parser: Parser) -> None:
    parser.add_argument("word", nargs="?", metavar="PROMPT", help="the task")
    parser.add_argument("--prompt", metavar="TEXT", help="the task, as PROMPT")
    parser.add_argument("--prompt-file", metavar="FILE", help="read the task from a file, or from stdin for -")
    add_job_options(parser)


def run(options: Options) -> int:
    config = load_config()
    prompt, agent = prompt_of(options), _agent(options, config)
    registration = register(options, config, prompt=prompt, agent=agent, choices=choices_of(options, config))
    if not registration.created:
        _say_known(registration, prompt)
    print_job(registration.job, as_json=options.json, line=registration.job.job_id)
    return 0


def _agent(options: Options, config: Config) -> str:
    agent: str | None = options.agent if options.agent is not None else config.default_agent
    if agent is None:
        raise BadInput(why="no agent is given; add --agent claude-code (or codex, shell, human, …)")
    return agent


def _say_known(registration: Registration, prompt: str) -> None:
    job = registration.job
    differs = "" if job.prompt == prompt else "; it has another prompt, and mam did not store this one"
    say(f"a job with the key {job.key} exists and is {job.status}{differs}")
