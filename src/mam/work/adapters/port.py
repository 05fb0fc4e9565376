"""The interface of an adapter, which gives a job to one kind of agent."""

from __future__ import annotations

from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from mam.jobs.record import Job, Json
    from mam.work.reports.report import Reader, Report
    from mam.work.workdir import WorkDir

    class Adapter(Protocol):
        """`launch` may write files of the attempt, and starts nothing."""

        name: str

        def launch(self, job: Job, brief: str, workdir: WorkDir, private: str) -> Launch | None:
            """None if there is no process: a person reads the brief and reports by hand.

            `private` is the prefix of the attempt's own files, which the agent may read. Raises AgentNotFound, with
            advice, if the agent cannot run the job.
            """


EXIT, SAID, ARTIFACTS, REPORT = "exit", "said", "artifacts", "report"
"""When an attempt counts as done, before artifacts and validation are checked: exit code 0; the agent's own `mam
complete`; the artifacts alone, whatever the exit code; or exit code 0 and a report of success in the output."""


class Launch(Frozen):
    """How to start the agent."""

    argv: tuple[str, ...]
    env: dict[str, str]
    """In addition to `agent_environment`."""
    stdin: bytes | None = None
    success: str = EXIT
    retry_codes: tuple[int, ...] = ()
    """Exit codes after which a retry is worthwhile."""
    reader: Callable[[], Reader] | None = None
    """Creates the report reader for the agent's output."""
    agent_record: Json = {}  # noqa: RUF012 - nothing writes into it
    """For the record: the agent, and the permissions that it got."""
    login: str = ""
    """What a user who is not logged in has to do."""
    read_session_file: Callable[[Report, str], None] | None = None
    """Called after the end: adds to the report what the agent wrote into its session file since a given time."""
