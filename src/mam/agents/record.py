"""The record of one session: its identity, its location and its lease.

The format is version 3 of the shared registry (seed 003). mam's own fields are in the group `mam`. Groups that mam does
not use (`gateway`, `mailbox`) are preserved.
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
"""States with a session and a lease. The others describe an ended session."""


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
    """Checked when it is used: a relative path must raise its own error and not make the record invalid."""
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
    """The group `mam`: the session's exact location, so that mam never acts on another session."""

    host: str = ""
    socket: str = ""
    """The socket of the tmux server. Without it, a session on another server would look dead."""
    server: Json | None = None
    """The tmux server's boot id, pid and start time."""
    session_id: str = ""
    session_created: int = 0
    pane: str = ""
    process: Json | None = None
    """The program in the pane, in the same form."""
    companion: Json | None = None
    lease_boot: Json | None = None
    """The lease on the boot clock: boot_id, boot_ms, and the expires_at that they belong to."""
    superseded: tuple[str, ...] = ()
    """Replaced generations, which may not publish again."""
    stores: tuple[str, ...] = ()
    """Stores that this session has claimed from, without passwords."""

    def to_json(self) -> Json:
        return {name: _plain(held) for name, held in self.as_dict().items() if held}


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
    """Groups of other programs, unchanged."""

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
        mam = self.mam.to_json()
        if mam:
            value["mam"] = mam
        return value


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
