"""The record of one session: who it is, where it runs, until when that is believed.

The form is version 3 of the shared registry (seed 003). What mam knows beyond it stands in one group, `mam`; groups
that mam has no use for (`gateway`, `mailbox`) are carried along untouched.
"""

from __future__ import annotations

from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

SCHEMA_VERSION = 3

ACTIVE, STOPPED, RELAUNCHING, RETIRED = "active", "stopped", "relaunching", "retired"
STATES = (ACTIVE, STOPPED, RELAUNCHING, RETIRED)
LIVE = (ACTIVE, RELAUNCHING)
"""States with a session and a lease. The others are a memory of one."""


class Lifecycle(Frozen):
    state: str
    relaunchable: bool
    state_updated_at: str
    stopped_at: str | None = None
    stop_reason: str | None = None


class Identity(Frozen):
    backend: str
    tool: str


class Runtime(Frozen):
    manifest_path: str
    """Whether it is absolute is asked when it is used: a bad one must fail loudly and not as `no record`."""
    session_root: str | None = None
    agent_def_dir: str | None = None


class Terminal(Frozen):
    current_session_name: str | None
    last_session_name: str
    kind: str = "tmux"


class Liveness(Frozen):
    published_at: str
    lease_expires_at: str


class MamGroup(Frozen):
    """The group `mam`: what has to be known so that nobody else is taken for this session."""

    host: str = ""
    socket: str = ""
    """The tmux server's socket; a server elsewhere would look like a dead session."""
    server: Json | None = None
    """The tmux server as boot, pid and start time."""
    session_id: str = ""
    session_created: int = 0
    pane: str = ""
    process: Json | None = None
    """The program in the pane, likewise."""
    companion: Json | None = None
    lease_boot: Json | None = None
    """The lease on the clock that does not jump: boot_id, boot_ms, and the expires_at it belongs to."""
    superseded: tuple[str, ...] = ()
    """Generations that have been replaced; none of them comes back."""
    stores: tuple[str, ...] = ()
    """Stores this session has claimed from, without passwords."""


class AgentRecord(Frozen):
    agent_name: str
    agent_id: str
    generation_id: str
    lifecycle: Lifecycle
    identity: Identity
    runtime: Runtime
    terminal: Terminal
    liveness: Liveness | None = None
    mam: MamGroup = MamGroup()
    groups: Json = {}  # noqa: RUF012 - nothing writes into a record's tables
    """What others keep in the record, as it came."""

    @property
    def live(self) -> bool:
        return self.lifecycle.state in LIVE

    def to_json(self) -> Json:
        value: Json = {
            **self.groups,
            "schema_version": SCHEMA_VERSION,
            "agent_name": self.agent_name,
            "agent_id": self.agent_id,
            "generation_id": self.generation_id,
            "lifecycle": self.lifecycle.as_dict(),
            "identity": self.identity.as_dict(),
            "runtime": self.runtime.as_dict(),
            "terminal": self.terminal.as_dict(),
            "liveness": None if self.liveness is None else self.liveness.as_dict(),
        }
        mam = {name: _plain(held) for name, held in self.mam.as_dict().items() if held}
        if mam:
            value["mam"] = mam
        return value


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
