"""What an adapter is: one kind of agent, and how a job is given to it."""

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
        """Knows one agent. `launch` may write files of the attempt's own, and starts nothing."""

        name: str

        def launch(self, job: Job, brief: str, workdir: WorkDir, private: str) -> Launch | None:
            """None when there is no process: somebody reads the brief and reports by hand.

            `private` is how the names of the attempt's own files begin, in which its agent may find what to read.
            AgentNotFound when the agent cannot be given the job, with what to do about it.
            """


EXIT, SAID, ARTIFACTS, REPORT = "exit", "said", "artifacts", "report"
"""What counts as done before artifacts and validation are looked at: exit code 0; only the agent's own `mam
complete`; the artifacts alone, whatever the exit code; or exit code 0 and a report in its output that says so."""


class Launch(Frozen):
    """How to start the agent."""

    argv: tuple[str, ...]
    env: dict[str, str]
    """Added to what `agent_environment` gives."""
    stdin: bytes | None = None
    success: str = EXIT
    retry_codes: tuple[int, ...] = ()
    """Exit codes after which it is worth trying again."""
    reader: Callable[[], Reader] | None = None
    """Who understands what the agent prints."""
    agent_record: Json = {}  # noqa: RUF012 - nothing writes into it
    """For the record: the agent, and which rights were passed on to it."""
    login: str = ""
    """What a user does who is not logged in."""
    read_session_file: Callable[[Report, str], None] | None = None
    """After the end: adds what the agent told elsewhere than in its output, since a time."""
