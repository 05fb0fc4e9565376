"""The options of a new job, for every verb that registers one."""

from __future__ import annotations

import os
import sys

from mam.agent_table import AGENTS, CODING_AGENTS
from mam.cli.args.options import at_door, job_registry, number, registry_of
from mam.cli.args.text_files import read_text
from mam.cli.render.streams import say, stderr_is_terminal
from mam.errors import BadInput, UnknownJob
from mam.jobs.draft import HUMAN, draft_job
from mam.jobs.input_rules import check_auth_token, check_text
from mam.jobs.record import CHOICES, Job
from mam.util.clock import SystemClock
from mam.util.human_time import parse_when, parse_whole_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.cli.args.options import AnyRegistry
    from mam.cli.args.parser import Options, Parser
    from mam.config.settings import Config
    from mam.registry import Registry
    from mam.stores.port import Registration


def add_job_options(parser: Parser) -> None:
    parser.add_argument("--agent", metavar="A", help=f"the kind of worker: {', '.join(AGENTS)}, …")
    parser.add_argument(
        "--label", "--agent-session", "-s", metavar="LABEL",
        help="the label, which selects the worker; default: the agent's name"
    )  # fmt: skip
    add_limit_options(parser)
    add_check_options(parser)
    parser.add_argument("--workdir", metavar="DIR", help="the directory to work in; default: the current one")
    _add_order(parser)
    _add_running(parser)
    _add_events(parser)


def add_limit_options(parser: Parser) -> None:
    parser.add_argument("--timeout", type=parse_whole_seconds, metavar="S",
                        help="the longest time of an attempt, 0 for no limit (default 3600; human 0)")  # fmt: skip
    parser.add_argument("--idle-timeout", type=parse_whole_seconds, metavar="S",
                        help="time without output until it is quiet, 0 for never (default 120; human 0)")  # fmt: skip
    parser.add_argument(
        "--priority", type=number, metavar="N", help="workers claim a higher priority first (default 0)"
    )
    parser.add_argument("--at", metavar="T", help="the earliest start: +2h, 90s, 2026-11-15T10:00:00Z")
    parser.add_argument("--max-retries", type=number, metavar="N",
                        help="how often a retryable failure is retried (default 3)")  # fmt: skip
    parser.add_argument("--retry-on-exit", action="store_true",
                        help="an exit code other than 0 is a retryable failure")  # fmt: skip
    parser.add_argument("--key", metavar="K", help="a unique key: a second job with it is not registered")


def add_check_options(parser: Parser) -> None:
    """What the agent may do, and what mam checks."""
    group = parser.add_argument_group("checks and rights")
    group.add_argument("--artifact", action="append", default=[], metavar="PATH",
                       help="a file that must exist when the job completes; repeatable")  # fmt: skip
    group.add_argument("--validate", metavar="SCRIPT",
                       help="a script that checks the outcome; mam stores its hash")  # fmt: skip
    group.add_argument("--permissions", metavar="WORD",
                       help="what the agent may do unasked: ask, edit (files here) or full (default edit)")  # fmt: skip
    group.add_argument("--ask", action="store_true", help="the agent may ask a person (default: `[questions] ask`)")
    group.add_argument("--no-ask", action="store_true", help="the agent may not ask; what it may not do is refused")
    group.add_argument(
        "--model", metavar="M", help="the model that the agent uses; default: as in [agents.NAME], or its own"
    )
    group.add_argument(
        "--on-idle",
        metavar="WHAT",
        help="after the idle timeout: show it as quiet (show, default) or stop the attempt (stop)",
    )


def _add_order(parser: Parser) -> None:
    group = parser.add_argument_group("order")
    group.add_argument("--after", action="append", default=[], metavar="JOB",
                       help="start after this job has completed; repeatable, or separated by commas")  # fmt: skip
    group.add_argument("--on-dependency-failure", metavar="WHAT",
                       help="if it does not complete: hold (default), run or cancel")  # fmt: skip
    group.add_argument("--exclusive", metavar="KEY", help="at most one job with this key runs at a time")


def _add_running(parser: Parser) -> None:
    group = parser.add_argument_group("execution")
    group.add_argument("--fresh", action="store_true", help="run in a new, empty directory")
    group.add_argument("--worktree", action="store_true", help="run in a new git worktree and branch")


def _add_events(parser: Parser) -> None:
    group = parser.add_argument_group("events")
    group.add_argument("--broker", metavar="HOST[:PORT]",
                       help="the broker that its record names; default: MQTT_BROKER, else the settings")  # fmt: skip
    group.add_argument("--topic-prefix", metavar="T",
                       help="the topic of its events is T/events (default python/mqtt/jobs/JOB)")  # fmt: skip
    group.add_argument(
        "--sign", action="store_true", help="sign the job's events; always on for a broker on another host"
    )
    group.add_argument("--auth-token", metavar="TOKEN",
                       help="sign with this token, or - for stdin: others see command lines")  # fmt: skip


def choices_of(options: Options, config: Config) -> dict[str, Any]:
    """The parameters of `draft_job` that the options give."""
    on_idle = config.on_idle if options.on_idle is None else options.on_idle
    choices = {
        "label": options.label,
        "timeout_sec": options.timeout,
        "idle_timeout_sec": options.idle_timeout,
        "artifacts": options.artifact,
        "priority": options.priority,
        "due_ms": due_ms(options),
        "max_retries": options.max_retries,
        "retry_on_exit": options.retry_on_exit,
        "key": options.key,
        "workdir": _workdir(options),
        "origin_host": os.uname().nodename,
        "after": _after(options),
        "on_dependency_failure": check_choice("--on-dependency-failure", options.on_dependency_failure),
        "exclusive": options.exclusive,
        "workspace": _workspace(options),
        "validation": trusted_script(options),
        "permissions": check_choice("--permissions", options.permissions),
        "on_idle": check_choice("--on-idle", on_idle),
        "may_ask": _may_ask(options, config),
        "model": options.model,
        "broker": _broker(options, config),
        "topic_prefix": options.topic_prefix,
    }
    return {name: choice for name, choice in choices.items() if choice is not None}


def due_ms(options: Options) -> int | None:
    return None if options.at is None else parse_when(options.at, SystemClock().now().wall_ms)


def _may_ask(options: Options, config: Config) -> bool:
    if options.ask and options.no_ask:
        raise BadInput(why="--ask and --no-ask exclude each other")
    if options.ask or options.no_ask:
        return bool(options.ask)
    return bool(config.questions.get("ask", not os.environ.get("CI")))


def register(options: Options, config: Config, *, prompt: str, agent: str, choices: dict[str, Any]) -> Registration:
    """Registers a job: at the door of the worker that runs this process, else in the store."""
    if not at_door(options):
        store, registration = register_in_store(options, config, prompt=prompt, agent=agent, choices=choices)
        _warn_if_unserved(config, store, registration.job)
        return registration
    registry = job_registry(options)
    parent = _parent_fields(registry, config) if hasattr(registry, "store") else {}  # a door sets the parent itself
    token = {} if options.auth_token is None else {"auth_token": _auth_token(options)}
    return registry.register(prompt=prompt, agent=agent, sign=options.sign, **choices, **token, **parent)


def register_in_store(
    options: Options, config: Config, *, prompt: str, agent: str, choices: dict[str, Any]
) -> tuple[Registry, Registration]:
    """The draft is checked before a store is created for it."""
    draft = draft_job(job_id=SystemClock().new_id(), prompt=prompt, agent=agent, **choices)
    token = _auth_token(options)
    registry = registry_of(options, create=True, config=config)
    draft = draft.replace(**_parent_fields(registry, config))
    registration = registry.register_draft(draft, sign=options.sign, auth_token=token)
    _warn(options, config, registry, registration.job)
    return registry, registration


def _warn(options: Options, config: Config, registry: Registry, job: Job) -> None:
    """Reports what the user probably did not mean."""
    agents = {*AGENTS, *config.commands}
    if job.agent not in agents:
        if any(worker.serves(job) and job.agent in worker.agents for worker in registry.live_workers()):
            return
        from mam.cli.render.text import nearest, one_line

        hint = nearest(job.agent, agents)
        say(f"{one_line(job.agent)} is not an agent that mam can run here{hint}; the job waits for another worker")
    elif options.max_retries and not job.retry_on_exit and not _retries_exits(config, job.agent):
        say("--max-retries applies to retryable failures; an exit code is one only with --retry-on-exit")


def _warn_if_unserved(config: Config, registry: Registry, job: Job) -> None:
    """For a person: a script may register all its jobs before it starts a worker. People end jobs for `human` without a
    worker, and an agent that mam does not know was already reported."""
    if not stderr_is_terminal() or job.agent == HUMAN or job.agent not in {*AGENTS, *config.commands}:
        return
    if (problem := registry.never_served(job)) is not None:
        say(f"{problem[0].lower()}{problem[1:].removesuffix('.')}")


def _retries_exits(config: Config, agent: str) -> bool:
    """Whether mam knows failures of this agent that are retried."""
    return agent in CODING_AGENTS or agent == HUMAN or bool(config.commands.get(agent, {}).get("retry_codes"))


def _parent_fields(registry: AnyRegistry, config: Config) -> dict[str, Any]:
    """The parent that MAM_JOB_ID names, if this store has it and it has not ended. `export $(mam pick --export)` leaves
    the variable behind in a shell."""
    own = os.environ.get("MAM_JOB_ID")
    if not own:
        return {}
    from mam.jobs.rights import can_be_parent, parent_fields

    try:
        parent = registry.get(own)
    except UnknownJob:
        problem = "is not in this store"
    else:
        if can_be_parent(parent):
            return parent_fields(parent, config.max_depth)
        problem = f"has ended ({parent.status})"
    say(f"MAM_JOB_ID names job {own[:80]}, which {problem}: the new job is not its child")
    return {}


def prompt_of(options: Options) -> str:
    given = [text for text in (options.word, options.prompt, options.prompt_file) if text is not None]
    if len(given) != 1:
        what = "a prompt" if not given else "only one prompt"
        raise BadInput(why=f"give {what}: PROMPT, --prompt TEXT or --prompt-file FILE")
    text: str = given[0] if options.prompt_file is None else read_text("prompt", options.prompt_file)
    return text


def _after(options: Options) -> list[str]:
    """An empty name is a script's unset variable; the job must not start without its dependency."""
    names = [name.strip() for given in options.after for name in given.split(",")]
    if not all(names):
        raise BadInput(why="--after needs the id of a job; omit --after if the job has no dependency")
    return names


def check_choice(option: str, word: str | None) -> str | None:
    """The word, if the option takes it or was not given."""
    if word is None:
        return None
    choices = CHOICES[option.removeprefix("--").replace("-", "_")]
    if word not in choices:
        raise BadInput(why=f"{option} takes {', '.join(choices[:-1])} or {choices[-1]}, not {word[:40]!r}")
    return word


def _workspace(options: Options) -> str:
    if options.fresh and options.worktree:
        raise BadInput(why="give --fresh or --worktree, not both")
    return "fresh" if options.fresh else "worktree" if options.worktree else "workdir"


def trusted_script(options: Options) -> dict[str, Any] | None:
    if options.validate is None:
        return None
    from mam.work.validator import trusted_validation

    return trusted_validation(options.validate)


def _workdir(options: Options) -> str:
    if options.workdir is not None and not options.workdir.strip():
        raise BadInput(why="--workdir is empty; omit it to use the current directory")
    try:
        whole = (
            os.path.realpath if os.environ.get("MAM_JOB_ID") else os.path.abspath
        )  # the workdir of a child has no symbolic link
        workdir = whole(options.workdir if options.workdir is not None else os.getcwd())
    except FileNotFoundError:
        raise BadInput(why="the working directory no longer exists; change to another directory") from None
    check_text("workdir", workdir, 4096)
    if not os.path.isdir(workdir):
        raise BadInput(why=f"--workdir {workdir} is not a directory")
    return workdir


def _broker(options: Options, config: Config) -> dict[str, Any] | None:
    """At a worker's door, the child gets its parent's broker, and only an explicit --broker is passed on."""
    named = options.broker
    if named is None and (at_door(options) or not (os.environ.get("MQTT_BROKER") or config.broker.get("host"))):
        return None
    from mam.bus.settings import broker_to_record

    return broker_to_record(config.broker, named)


def _auth_token(options: Options) -> str | None:
    if options.auth_token is None:
        return None
    given: str = options.auth_token
    return check_auth_token(sys.stdin.readline().rstrip("\r\n") if given == "-" else given)
