"""The part that the adapters of coding agents share: program, permissions, and the session of the attempt before."""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from importlib import import_module

from mam.agent_table import AGENTS, load
from mam.errors import AgentNotFound
from mam.jobs.resuming import has_brief, resumable_conversation
from mam.machine.environment import find_program
from mam.util.frozen import Frozen
from mam.work.adapters.port import REPORT, Launch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mam.agent_table import AgentKind
    from mam.jobs.record import Job, Json
    from mam.work.reports.report import Report
    from mam.work.workdir import WorkDir

DOOR_VERBS = ("publish", "heartbeat", "complete", "fail", "ask")
"""Commands of mam that every agent may run, to report. `register` is not among them: a job for `shell` is a command,
and an agent that may not run commands must not get one run by registering it."""


class AgentStart(Frozen):
    """What one start of an agent depends on."""

    program: str
    permissions: str
    model: str | None
    args: tuple[str, ...]
    """The user's own."""
    session: str | None
    private: str
    workdir: str


class Asking(Frozen):
    """The start of an agent that can ask a person."""

    argv: tuple[str, ...]
    way: str
    """For the record: through what the agent asks."""
    passed: tuple[str, ...] = ()
    """For the record: what gives it its permissions, if it is not what other jobs get."""


class CodingAdapter(ABC):
    """An agent that reads its brief from stdin and reports the outcome in its output."""

    name: str
    """Its row in mam.agent_table."""
    read_session_file: Callable[[Report, str], None] | None = None

    def __init__(self, settings: Json) -> None:
        """`settings` is the table `[agents.NAME]`."""
        self._settings = settings

    def launch(self, job: Job, brief: str, workdir: WorkDir, private: str) -> Launch:
        kind = AGENTS[self.name]
        session = resumable_conversation(job, os.uname().nodename, workdir.path)
        program = find_agent_program(kind)
        arguments, env = self.permission_args(job.permissions)
        passed = [*arguments, *(f"{name}={value}" for name, value in env.items())]
        model, added = job.model or self._settings.get("model"), self._settings.get("args", [])
        check_added_args(kind, program, added)
        chosen = [*([] if model is None else ["--model", model]), *added]
        own = {"model": model, "args": added, "env": sorted(self._settings.get("env", {}))}
        argv = (program, *self.command_args([*arguments, *chosen], session))
        if job.may_ask:
            start = AgentStart(
                program=program, permissions=job.permissions, model=model, args=tuple(added), session=session,
                private=private, workdir=workdir.path,
            )  # fmt: skip
            asking = self.asking(start)
            if asking is not None:
                argv, passed = asking.argv, list(asking.passed or passed)
                own["asks"] = asking.way
        return Launch(
            argv=argv,
            env={**self._settings.get("env", {}), **env},
            stdin=brief.encode(errors="replace"),
            success=REPORT,
            reader=load(kind.reader),
            agent_record=permission_record(job, passed, session) | {name: it for name, it in own.items() if it},
            login=kind.login,
            read_session_file=self.read_session_file,
        )

    def asking(self, _start: AgentStart) -> Asking | None:
        """How to start the agent so that it can ask a person; None if it can only be started as for other jobs."""
        return None

    @abstractmethod
    def permission_args(self, permissions: str) -> tuple[list[str], dict[str, str]]:
        """The arguments and the environment variables that give the agent a job's permissions."""

    @abstractmethod
    def command_args(self, own_args: list[str], session: str | None) -> list[str]:
        """The whole command line after the program. `own_args` give permissions, model and the user's arguments;
        `session` is the conversation to resume."""


def check_added_args(kind: AgentKind, program: str, args: Sequence[str]) -> None:
    """Rejects options that the program's help does not name, and those that mam sets, before the agent starts."""
    options = [word.partition("=")[0] for word in args if word.startswith("-") and word != "-"]
    if not options:
        return
    from mam.work.adapters.installed import unknown_options

    module = import_module(kind.adapter)
    own = sorted(set(options) & {*module.FLAGS, "--"} - {*kind.repeatable})
    if own:
        raise AgentNotFound(
            agent=kind.name, why=f"mam sets {own[0]} itself; remove it from args in [agents.{kind.name}]"
        )
    unknown = unknown_options(program, module.HELP, options)
    if unknown:
        why = f"{kind.program} knows no option {unknown[0]}; correct args in [agents.{kind.name}]"
        raise AgentNotFound(agent=kind.name, why=why)


def find_agent_program(kind: AgentKind) -> str:
    found = find_program(kind.program, os.environ)
    if found is None:
        why = f"{kind.program} is not on PATH; `npm install -g {kind.package}` installs it"
        raise AgentNotFound(agent=kind.name, why=why)
    return found


def permission_record(job: Job, passed: Sequence[str], session: str | None) -> Json:
    """For the record: the job's permissions, and the arguments and variables that passed them to the agent."""
    resumed = {} if session is None else {"resumed": session, **({"briefed": True} if has_brief(job) else {})}
    return {"name": job.agent, "permissions": job.permissions, "passed": list(passed), **resumed}


def driver_argv(agent: str, *words: str) -> tuple[str, ...]:
    """The command of mam's driver for an agent. Python adds no directory of the job to its path."""
    return (sys.executable, "-P", "-m", f"mam.work.drivers.{agent}", *words)
