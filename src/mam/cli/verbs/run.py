"""Run one job now, print its output, exit with its outcome.

PROMPT goes to --agent, otherwise to the setting default_agent, otherwise to the only installed agent. The words behind
-- are a command, which mam runs without an agent. On a terminal, the run of a coding agent is a conversation, as
`mam output` shows it; in a pipe, its output is unchanged. The job runs in the background: Ctrl-C only detaches; a
second Ctrl-C within two seconds cancels it. The exit code is 0 if the job completed, 7 if it ended in error, 8 if it
was cancelled.

  mam run "fix the flaky test" --agent claude-code
  mam run -- make test
  mam run -d --agent shell "make release && ./publish.sh"
"""

from __future__ import annotations

import os
import sys
import time
from threading import Thread

from mam.agent_table import agent_kind
from mam.cli.args.job_options import add_job_options, choices_of, prompt_of, register_in_store
from mam.cli.args.options import registry_of
from mam.cli.render.changes import closing_lines
from mam.cli.render.closing import closing_line, opening_line
from mam.cli.render.streams import print_job, print_json, say, stdout_is_terminal
from mam.cli.render.text import one_line
from mam.config.settings import load_config
from mam.errors import BadInput, MamError, ProgramNotFound, ProgramUnfit
from mam.jobs.input_rules import ID_PREFIX_SHOWN
from mam.jobs.question import open_questions
from mam.jobs.status import CANCELLED, COMPLETED, PENDING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from subprocess import Popen

    from mam.cli.args.parser import Options, Parser
    from mam.config.settings import Config
    from mam.jobs.record import Job
    from mam.registry import Registry

SHELL = "shell"
DETACHED, ENDED_IN_ERROR, WAS_CANCELLED, UNREACHABLE = 130, 7, 8, 9
MAX_WORKERS = 3
"""How many workers mam starts, one after another, before it gives up."""
CANCEL_SECONDS = 2.0
"""How long a second Ctrl-C cancels the job."""
POLL_SECONDS = 0.1
"""The delay between the end of a job and the return to the shell."""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("word", nargs="*", metavar="PROMPT", help="the task; or COMMAND ARGS… behind --")
    parser.add_argument("--prompt", metavar="TEXT", help="the task, as PROMPT")
    parser.add_argument("--prompt-file", metavar="FILE", help="read the task from a file, or from stdin for -")
    parser.add_argument("--continue", metavar="JOB", help="in the conversation and the directory of this job")
    parser.add_argument("--detach", "-d", action="store_true", help="print the id and return at once")
    add_job_options(parser)
    parser.takes_command = True


def run(options: Options) -> int:
    if os.environ.get("MAM_SOCKET") and options.store is None and options.registry_dir is None:
        raise BadInput(why="`mam run` does not work inside a job; use `mam register` and `mam wait`")
    config = load_config()
    registry, job = _registered(options, config) if getattr(options, "continue") is None else _continued(options)

    def start() -> Popen[bytes]:
        return _start_worker(options, registry, job)

    if options.detach:
        if not job.status.ended:
            start()
        print_job(job, as_json=options.json, line=job.job_id)
        return 0
    return _follow(registry, job, start, as_json=options.json)


def _registered(options: Options, config: Config) -> tuple[Registry, Job]:
    prompt, agent = _prompt_and_agent(options, config)
    choices = choices_of(options, config)
    if options.command and not options.after:  # a dependency may still create the program
        _check_program(options.command[0], choices["workdir"], choices["workspace"])
    registry, registration = register_in_store(options, config, prompt=prompt, agent=agent, choices=choices)
    return registry, registration.job


def _continued(options: Options) -> tuple[Registry, Job]:
    from mam.cli.args.continuing import continuation_choices, register_continuation

    choices, registry, name = continuation_choices(options), registry_of(options), getattr(options, "continue")
    if options.command is not None and registry.get(name).agent != SHELL:
        raise BadInput(why=f"job {name[:80]} ran no command, so a prompt continues it")
    prompt = _only_prompt(options) if options.command is None else _command(options)
    return registry, register_continuation(registry, name, prompt, choices).job


def _only_prompt(options: Options) -> str:
    if len(options.word) > 1:
        words = " ".join(options.word)
        raise BadInput(why=f'put the prompt in quotes: mam run "{words[:60]}"; a command follows --')
    options.word = options.word[0] if options.word else None
    return prompt_of(options)


def _prompt_and_agent(options: Options, config: Config) -> tuple[str, str]:
    """Only words behind -- are a command; mam never runs a prompt as a script."""
    if options.command is not None:
        return _command(options), SHELL
    return _only_prompt(options), options.agent if options.agent is not None else _agent(config)


def _command(options: Options) -> str:
    from shlex import join

    if options.word or options.prompt is not None or options.prompt_file is not None:
        raise BadInput(why="give a prompt or a command behind --, not both")
    if not options.command:
        raise BadInput(why="give a command behind --: mam run -- make test")
    if options.agent not in (None, SHELL):
        raise BadInput(why=f"mam runs a command behind -- without an agent; omit --agent {options.agent}")
    return join(options.command)


def _check_program(word: str, workdir: str, workspace: str) -> None:
    """Report a mistyped program before mam registers a job. A fresh directory or worktree does not exist yet."""
    from mam.machine.environment import can_run, shell_knows

    name, is_assignment, _ = word.partition("=")
    if "/" not in name:
        if not is_assignment and not shell_knows(word):
            raise ProgramNotFound(program=repr(word[:80]))
        return
    path = os.path.join(workdir, word)
    if (workspace == "workdir" or os.path.isabs(word)) and not can_run(path):
        if not os.path.exists(path):
            raise ProgramNotFound(program=repr(path))
        raise ProgramUnfit(program=repr(path), what="a directory" if os.path.isdir(path) else "not executable")


def _agent(config: Config) -> str:
    from mam.work.adapters import installed_agents

    if config.default_agent is not None:
        return config.default_agent
    found = installed_agents(config)
    if len(found) == 1:
        return found[0]
    if found:
        raise BadInput(why=f"several agents are installed; add --agent {' or --agent '.join(found)}")
    raise BadInput(
        why="no agent is installed on PATH; give one with --agent,"
        ' or run a command: mam run -- COMMAND, or a script: mam run --agent shell "SCRIPT"'
    )


def _start_worker(options: Options, registry: Registry, job: Job) -> Popen[bytes]:
    """Start a worker for this job in a session of its own, which Ctrl-C and a closed terminal do not reach."""
    import subprocess

    from mam.util.state_dir import make_private
    from mam.work.state_dirs import work_directory

    directory = make_private(work_directory(registry.store.address))
    # In the environment, because an address may contain a password and other users can read a command line.
    store = options.store if options.store is not None else options.registry_dir
    env = dict(os.environ) if store is None else {**os.environ, "MAM_STORE": store}
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(os.path.join(directory, f"{job.job_id}.worker.log"), flags, 0o600)
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "mam", "worker", f"--job={job.job_id}"],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=descriptor,
            stderr=descriptor,
            start_new_session=True,
        )
    finally:
        os.close(descriptor)


# -- following -------------------------------------------------------------------------------------------------------


def _follow(registry: Registry, job: Job, start: Callable[[], Popen[bytes]], *, as_json: bool) -> int:
    """Print the output until the job ends. `start` starts a worker for the job."""
    short = job.job_id[:ID_PREFIX_SHOWN]
    restarter = _WorkerRestarter(start, lambda: registry.get(job.job_id).status.ended)
    try:
        if not job.status.ended:
            restarter.start()
        job = _until_ended(registry, job, quietly=as_json)
    except KeyboardInterrupt:
        if restarter.gave_up:
            say(f"{MAX_WORKERS} workers ended before {short} did; `mam worker --job {short}` shows why")
            return UNREACHABLE
        return _detach(registry, job, short)
    if as_json:
        print_json(job.to_json())
    else:
        if job.attempt and _is_shown_as_conversation(job):
            print(flush=True)
        say(closing_line(job, short))
        for line in closing_lines(job):
            sys.stderr.write(f"  {line}\n")
    return 0 if job.status is COMPLETED else WAS_CANCELLED if job.status is CANCELLED else ENDED_IN_ERROR


class _WorkerRestarter(Thread):
    """Starts a worker for the job, and another if it was killed. After the last one it interrupts the main thread,
    which would otherwise wait for ever."""

    def __init__(self, start: Callable[[], Popen[bytes]], has_ended: Callable[[], bool]) -> None:
        super().__init__(name="mam-restarter", daemon=True)
        self._start_worker = start
        self._has_ended = has_ended
        self.gave_up = False

    def run(self) -> None:
        try:
            for _ in range(MAX_WORKERS):
                self._start_worker().wait()
                if self._has_ended():
                    return
        except (MamError, OSError):
            pass  # the main thread meets the same error
        from _thread import interrupt_main

        self.gave_up = True
        interrupt_main()


def _until_ended(registry: Registry, job: Job, *, quietly: bool) -> Job:
    """Print the output of each attempt, also of one that ended before mam saw it run. What keeps the job from running
    and each reason for another attempt are printed once."""
    shown, reason, told = 0, None, ""
    for seen in registry.follow([job.job_id]):
        if not quietly and (why := " ".join(registry.hindrances(seen))) not in ("", told):
            told = why
            say(f"{seen.job_id[:ID_PREFIX_SHOWN]} does not run yet: {one_line(why)}")
        if seen.status is PENDING and seen.attempt and seen.reason not in (None, reason) and not quietly:
            reason = seen.reason
            say(f"{seen.job_id[:ID_PREFIX_SHOWN]} runs again: {one_line(reason)}")
        if seen.attempt > shown and not quietly:
            if not shown:
                _print_opening(seen)
            shown = seen.attempt
            _follow_attempt(registry, seen)
    return registry.get(job.job_id)


def _is_shown_as_conversation(job: Job) -> bool:
    return stdout_is_terminal() and bool(agent_kind(job.agent).conversation)


def _print_opening(job: Job) -> None:
    """Above a conversation: which job it is, and where it runs."""
    if _is_shown_as_conversation(job):
        from mam.cli.render.ansi import has_colours, to_ansi

        print(to_ansi(opening_line(job, job.job_id[:ID_PREFIX_SHOWN]), has_colours()), end="\n\n", flush=True)


def _follow_attempt(registry: Registry, job: Job) -> None:
    from mam.cli.attempt_output import AttemptOutput, View
    from mam.work.output_source import LocalOutput, local_log

    source = LocalOutput(local_log(registry, job.job_id, job.attempt), look_seconds=POLL_SECONDS)
    output = AttemptOutput(registry=registry, job=job, attempt=job.attempt, source=source)
    output.follow(View(with_end=False))


def _detach(registry: Registry, job: Job, short: str) -> int:
    try:
        say(f"detached; {short} continues. Ctrl-C within {CANCEL_SECONDS:g} s cancels it")
        time.sleep(CANCEL_SECONDS)
    except KeyboardInterrupt:
        try:
            registry.cancel(job.job_id, reason="Ctrl-C")
        except MamError as error:
            say(str(error))  # the job may have ended meanwhile
            return DETACHED
        say(f"cancelled {short}")
        return WAS_CANCELLED
    asks = [f"`mam answer {short}`"] if open_questions(registry.get(job.job_id)) else []
    ways = [*asks, f"`mam output {short} --follow`", f"`mam wait {short}`"]
    say(f"next: {', '.join(ways)} or `mam cancel {short}`")
    return DETACHED
