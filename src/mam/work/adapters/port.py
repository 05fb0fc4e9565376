"""What an adapter is: one kind of agent, and how a job is given to it."""

from __future__ import annotations

from mam.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from mam.jobs.record import Job
    from mam.work.places import Place

    class Adapter(Protocol):
        """Knows one agent. `launch` may write into the attempt's private directory, and starts nothing."""

        name: str

        def launch(self, job: Job, brief: str, place: Place, brief_file: str) -> Launch | None:
            """None when there is no process: somebody reads the brief and reports by hand.

            `brief_file` holds the brief, in the attempt's private directory, where an adapter may put more.
            AgentNotFound when the agent cannot be given the job, with what to do about it.
            """


EXIT, SAID, ARTIFACTS = "exit", "said", "artifacts"
"""What counts as done before artifacts and validation are looked at: exit code 0; only the agent's own `mam
complete`; or the artifacts alone, whatever the exit code."""


class Launch(Frozen):
    """How to start the agent."""

    argv: tuple[str, ...]
    env: dict[str, str]
    """Added to what `agent_environment` gives."""
    stdin: bytes | None = None
    success: str = EXIT
    retry_codes: tuple[int, ...] = ()
    """Exit codes after which it is worth trying again."""
