"""The messages that the worker gets about a run. `Ended`, `Failed` and `Lost` are final."""

from __future__ import annotations

from mam.machine.processes import ProcessId
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


LEFT_BEHIND = "the agent ended and left processes behind"
"""Why the tree of an agent that had ended was ended."""


class Started(Frozen):
    """The agent runs."""

    agent: ProcessId | None
    keeper: ProcessId | None

    def to_json(self) -> dict[str, Any]:
        """As the record stores it, and as `takeover.end_earlier` reads it."""
        return {
            "agent": self.agent and self.agent.to_json(),
            "keeper": self.keeper and self.keeper.to_json(),
        }


class Output(Frozen):
    """Shows activity, about once a second while there is output: the number of bytes so far."""

    stdout: int
    stderr: int


class Ended(Frozen):
    """The agent and its process tree have ended."""

    exit_code: int | None
    """None if a signal ended it."""
    signal: int | None
    user_seconds: float
    system_seconds: float
    """Of the whole tree, as far as its processes were waited for."""
    peak_memory_bytes: int
    """Of the largest process; at least about 12 MiB, the size of the keeper from which the agent was started."""
    wall_seconds: float
    stdout_bytes: int
    stderr_bytes: int
    stdout_tail: str
    """The last 64 KiB, as text."""
    lost_bytes: int
    """Output that could not be stored."""
    log_problem: str | None
    tree_ended_because: str | None
    """None if all processes ended on their own."""
    is_tree_gone: bool
    """False if some could not be ended within five seconds of SIGKILL (another user's, or stuck in the kernel)."""


class Failed(Frozen):
    """No agent was started."""

    reason: str
    is_machine_error: bool = False
    """Whether any other plan would have failed too (mam.work.host_checks)."""


class Lost(Frozen):
    """The keeper is gone or does not answer; how the agent ended is unknown."""

    reason: str
    left: str | None
    """What could not be ended, as a sentence."""


if TYPE_CHECKING:
    Message = Started | Output | Ended | Failed | Lost
    LastMessage = Ended | Failed | Lost


def parse_message(value: dict[str, Any]) -> Message:
    facts = {name: fact for name, fact in value.items() if name != "kind"}
    match value["kind"]:
        case "started":
            agent, keeper = (ProcessId.from_json(facts[name]) for name in ("agent", "keeper"))
            return Started(agent=agent, keeper=keeper)
        case "output":
            return Output(**facts)
        case "ended":
            return Ended(**facts)
        case _:
            return Failed(**facts)
