"""What the adapters of coding agents share: the program, its rights, and what is known of the attempt before."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod

from mam.errors import AgentNotFound
from mam.machine.environment import find_program
from mam.work.adapters.port import REPORT, Launch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mam.jobs.record import Job, Json
    from mam.work.reports.report import Reader, Report
    from mam.work.workdir import WorkDir

DOOR_VERBS = ("publish", "heartbeat", "complete", "fail")
"""What an agent may always run, to report. `register` is none of them: a job for `shell` is a command, and who may run
no command must not have one run."""


class CodingAdapter(ABC):
    """An agent that gets its brief by stdin, and tells by what it prints what became of it."""

    name: str
    program: str
    package: str
    login: str
    reader: Callable[[], Reader]
    read_session_file: Callable[[Report, str], None] | None = None

    def launch(self, job: Job, brief: str, workdir: WorkDir, _private: str) -> Launch:
        session = resumable_session(job, workdir)
        rights, env = self.permission_args(job.permissions)
        return Launch(
            argv=(find_agent_program(self.name, self.program, self.package), *self.command_args(rights, session)),
            env=env,
            stdin=brief.encode(errors="replace"),
            success=REPORT,
            reader=self.reader,
            agent_record=permission_record(
                job, [*rights, *(f"{name}={value}" for name, value in env.items())], session
            ),
            login=self.login,
            read_session_file=self.read_session_file,
        )

    @abstractmethod
    def permission_args(self, permissions: str) -> tuple[list[str], dict[str, str]]:
        """How it is told what it may do: on its command line, and in its environment."""

    @abstractmethod
    def command_args(self, rights: list[str], session: str | None) -> list[str]:
        """The rest of its command line."""


def find_agent_program(agent: str, program: str, package: str) -> str:
    found = find_program(program, os.environ)
    if found is None:
        raise AgentNotFound(agent=agent, why=f"{program} is not on PATH; `npm install -g {package}` installs it")
    return found


def resumable_session(job: Job, workdir: WorkDir) -> str | None:
    """The conversation of the attempt before, if it was held here: agents keep theirs by host and directory."""
    run = job.run or {}
    agent_record = run.get("agent")
    here = run.get("host") == os.uname().nodename and run.get("place") == workdir.path
    session = (
        agent_record.get("session")
        if here and isinstance(agent_record, dict) and agent_record.get("name") == job.agent
        else None
    )
    return session if isinstance(session, str) and session.replace("-", "").replace("_", "").isalnum() else None


def permission_record(job: Job, words: Sequence[str], session: str | None) -> Json:
    """For the record: what the job was allowed, and in which words the agent was told so."""
    resumed = {} if session is None else {"resumed": session}
    return {"name": job.agent, "permissions": job.permissions, "passed": list(words), **resumed}
