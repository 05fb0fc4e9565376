"""Hand one job to an agent here and now, follow it, and exit with its outcome.

PROMPT goes to --agent, else to default_agent of the settings, else to the only agent that is installed. Behind --
stands a command that is run as it is. The job runs in a session of its own: Ctrl-C only detaches, a second one within
two seconds cancels.

  mam run "fix the flaky login test" --agent claude-code --artifact report.md
  mam run -- make test
  mam run -d --agent shell "make release && ./publish.sh"
"""

from __future__ import annotations

import os
import sys

from mam.cli.args.job_options import add_job_options, choices_of, prompt_of, register_in_store
from mam.cli.render.streams import print_job
from mam.config.settings import load_config
from mam.errors import BadInput, ProgramNotFound, ProgramUnfit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from subprocess import Popen

    from mam.cli.args.parser import Options, Parser
    from mam.config.settings import Config
    from mam.jobs.record import Job
    from mam.registry import Registry

SHELL = "shell"


def add_arguments(parser: Parser) -> None:
    parser.add_argument("word", nargs="*", metavar="PROMPT", help="what to do, or COMMAND ARGS… behind --")
    parser.add_argument("--prompt", metavar="TEXT", help="the same")
    parser.add_argument("--prompt-file", metavar="FILE", help="read it from a file, or from stdin for -")
    parser.add_argument("--detach", "-d", action="store_true", help="print the id and come back at once")
    add_job_options(parser)
    parser.takes_command = True


def run(options: Options) -> int:
    if os.environ.get("MAM_SOCKET") and options.store is None and options.registry_dir is None:
        raise BadInput(why="this is the inside of a job: hand work on with `mam register`, and `mam wait` for it")
    config = load_config()
    prompt, agent = _prompt_and_agent(options, config)
    choices = choices_of(options, config)
    if options.command and not options.after:  # what a job before it makes may be missing now
        _check_program(options.command[0], choices["workdir"], choices["workspace"])
    registry, registration = register_in_store(options, config, prompt=prompt, agent=agent, choices=choices)
    job = registration.job

    def start() -> Popen[bytes]:
        return _start_worker(options, registry, job)

    if options.detach:
        if not job.status.ended:
            start()
        print_job(job, as_json=options.json, line=job.job_id)
        return 0
    from mam.cli.follow_job import follow

    return follow(registry, job, start, as_json=options.json)


def _prompt_and_agent(options: Options, config: Config) -> tuple[str, str]:
    """The prompt and who gets it. Prose is never run as a script: only what stands behind -- is a command."""
    if options.command is not None:
        return _command(options), SHELL
    if len(options.word) > 1:
        words = " ".join(options.word)
        raise BadInput(why=f'a prompt is one word to the shell: mam run "{words[:60]}"; a command stands behind --')
    options.word = options.word[0] if options.word else None
    return prompt_of(options), options.agent if options.agent is not None else _agent(config)


def _command(options: Options) -> str:
    from shlex import join

    if options.word or options.prompt is not None or options.prompt_file is not None:
        raise BadInput(why="give a prompt, or a command behind --, not both")
    if not options.command:
        raise BadInput(why="behind -- stands the command to run: mam run -- make test")
    if options.agent not in (None, SHELL):
        raise BadInput(why=f"a command behind -- is run as it is, not by {options.agent}; leave --agent out")
    return join(options.command)


def _check_program(word: str, workdir: str, workspace: str) -> None:
    """What was mistyped is told here, where it was typed, and no job is made of it. What is in a directory that is made
    for the job nobody knows yet."""
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
        raise BadInput(why=f"who shall do it? There are several agents here; add --agent {' or --agent '.join(found)}")
    raise BadInput(
        why="who shall do it? No agent was found on PATH; name one with --agent,"
        ' or run a command: mam run -- COMMAND, or a script: mam run --agent shell "SCRIPT"'
    )


def _start_worker(options: Options, registry: Registry, job: Job) -> Popen[bytes]:
    """A worker for this one job, in a session of its own, so that neither Ctrl-C nor a closed terminal reaches it."""
    import subprocess

    from mam.util.state_dir import make_private
    from mam.work.state_dirs import work_directory

    directory = make_private(work_directory(registry.store.address))
    # By the environment: an address may hold a password, and everybody can read a command line.
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
