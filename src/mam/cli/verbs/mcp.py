"""Serve mam's tools to an agent, over the Model Context Protocol on stdin and stdout.

Agents start this themselves; `mam plugin install` tells them how. It offers submit, wait, show, list, result, cancel
and ask, with --worker also claim and report. Jobs may work in the current directory. An agent cannot submit jobs for
the agent shell, or for another directory, unless you accept it. Inside a job, mam registers children of that job.

  mam mcp
  mam mcp --read-only
  mam mcp --accept shell --accept ~/other-project
"""

from __future__ import annotations

import os

from mam.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.cli.args.parser import Options, Parser
    from mam.config.settings import Config
    from mam.mcp.backend import Backend
    from mam.mcp.caller import Caller
    from mam.registry import Registry

SHELL = "shell"


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--read-only", action="store_true", help="offer only the tools that change nothing")
    parser.add_argument("--worker", action="store_true", help="also offer claim and report")
    parser.add_argument(
        "--accept", action="append", default=[], metavar="WHAT",
        help="what agents may submit beyond that: shell, or a directory; repeatable",
    )  # fmt: skip


def run(options: Options) -> int:
    from mam.machine.agent_tree import variable_of_agent
    from mam.mcp.caller import Service
    from mam.mcp.stdio import StdioServer
    from mam.mcp.store_backend import StoreBackend

    caller = _caller(options)

    def open_registry(create: bool) -> Registry:
        from mam.cli.args.options import registry_of

        return registry_of(options, create=create)

    # What mam prints must not mix with the messages, and what it starts must not read them.
    messages_in, messages_out = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    backend: Backend = StoreBackend(caller, open_registry, _load_config)
    address = variable_of_agent("MAM_SOCKET")
    if address and caller.own_job and options.store is None and options.registry_dir is None:
        from mam.mcp.door_backend import DoorBackend

        backend = DoorBackend(caller, address)
    StdioServer(Service(caller, backend, _load_config), messages_in, messages_out).run()
    return 0


def _caller(options: Options) -> Caller:
    from mam.machine.agent_tree import is_inside_agent, variable_of_agent
    from mam.machine.person import user_at_host
    from mam.mcp.caller import Caller

    here, own_job = _here(), variable_of_agent("MAM_JOB_ID")
    directories = tuple(_directory(word) for word in options.accept if word != SHELL)
    return Caller(
        name=user_at_host(), may_write=not options.read_only, is_worker=options.worker,
        may_answer=own_job is None and not is_inside_agent(), own_job=own_job, directory=here,
        accepts_shell=SHELL in options.accept, accepted_directories=directories,
    )  # fmt: skip


def _here() -> str:
    try:
        return os.path.realpath(os.getcwd())
    except FileNotFoundError:
        raise BadInput(why="the working directory no longer exists; start this in one that does") from None


def _directory(word: str) -> str:
    path = os.path.realpath(os.path.expanduser(word))
    if not os.path.isdir(path):
        raise BadInput(why=f"--accept takes shell or a directory, and {word[:200]!r} is neither")
    return path


def _load_config() -> Config:
    from mam.config.settings import load_config

    return load_config()
