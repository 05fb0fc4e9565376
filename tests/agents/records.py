"""Sample records."""

from __future__ import annotations

import json
from typing import Any

from mam.agents.names import bare_name, default_agent_id
from mam.agents.record import AgentRecord
from mam.agents.record_parser import record_from

PUBLISHED, EXPIRES = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def version_3(name: str = "MAM-gpu", generation: str = "generation-1", **changes: Any) -> dict[str, Any]:
    """As the other system writes it; a change of None leaves the group out."""
    value: dict[str, Any] = {
        "schema_version": 3,
        "agent_name": name,
        "agent_id": default_agent_id(bare_name(name)),
        "generation_id": generation,
        "lifecycle": {
            "state": "active",
            "relaunchable": True,
            "state_updated_at": PUBLISHED,
            "stopped_at": None,
            "stop_reason": None,
        },
        "identity": {"backend": "tmux", "tool": "claude-code"},
        "runtime": {"manifest_path": "/somewhere/manifest.json", "session_root": "/somewhere", "agent_def_dir": None},
        "terminal": {"kind": "tmux", "current_session_name": "gpu", "last_session_name": "gpu"},
        "liveness": {"published_at": PUBLISHED, "lease_expires_at": EXPIRES},
        "gateway": None,
        "mailbox": None,
    }
    value.update(changes)
    return {field: held for field, held in value.items() if field not in changes or held is not None}


def version_2(name: str = "HOUMAO-gpu", generation: str = "generation-1") -> dict[str, Any]:
    return {
        "schema_version": 2,
        "agent_name": name,
        "agent_id": default_agent_id(bare_name(name)),
        "generation_id": generation,
        "published_at": "2026-01-01T09:00:00+09:00",
        "lease_expires_at": "2126-01-01T00:00:00+00:00",
        "identity": {"backend": "local_interactive", "tool": "claude"},
        "runtime": {"manifest_path": "/somewhere/manifest.json", "session_root": "/somewhere", "agent_def_dir": None},
        "terminal": {"kind": "tmux", "session_name": "HOUMAO-gpu-1700000000000"},
        "gateway": {"host": "127.0.0.1", "port": 9900, "state_path": "/somewhere/g.json", "protocol_version": "v1"},
        "mailbox": {
            "transport": "filesystem",
            "principal_id": "gpu",
            "address": "gpu@houmao.localhost",
            "filesystem_root": "/somewhere/mail",
            "bindings_version": "1",
        },
    }


def stopped(name: str = "MAM-gpu", generation: str = "generation-1", state: str = "stopped") -> dict[str, Any]:
    value = version_3(name, generation)
    value["lifecycle"].update(state=state, relaunchable=state != "retired", stopped_at=PUBLISHED)
    value["terminal"]["current_session_name"] = None
    value["liveness"] = None
    return value


def a_record(name: str = "MAM-gpu", generation: str = "generation-1", **changes: Any) -> AgentRecord:
    record = record_from(version_3(name, generation))
    return record.replace(**changes)


def as_bytes(value: object) -> bytes:
    return json.dumps(value).encode()
