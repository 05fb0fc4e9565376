"""Doors for tests: a registry with a job that a worker holds, and clients that send anything."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Any

from mam.door_client import DoorClient
from mam.errors import StoreMissing
from mam.jobs.change import Change, audit_record
from mam.stores.port import ClaimRequest

if TYPE_CHECKING:
    from mam.jobs.record import Job
    from mam.registry import Registry
    from mam.util.clock import Moment
    from mam.work.door.server import Door

PATIENCE = 60.0
"""Only so that a broken test ends."""


def held_job(registry: Registry, label: str = "shell", **choices: Any) -> Job:
    """A job that a worker has just claimed."""
    job = registry.register(prompt="do it", agent=label, **choices).job
    return claimed(registry, job)


def claimed(registry: Registry, job: Job, lease_seconds: float = 60.0) -> Job:
    request = ClaimRequest(
        label=job.agent_session, owner="worker", lease_seconds=lease_seconds, supervised=True, job_id=job.job_id
    )
    held = registry.claim(request)
    assert held is not None
    return held


def unchanged_but(job: Job, now: Moment, **fields: Any) -> Change:
    """An act that no writer has: the record as a server that went back in time may hold it."""
    return Change(job=job.replace(**fields), lines=(audit_record("renewed", now, job),))


def through(door: Door, *, whole: bool = False) -> DoorClient:
    """The client that the verbs use, in a place without a store."""

    def nowhere() -> Registry:
        raise StoreMissing(store="here")

    return DoorClient(door.address, nowhere, whole=whole)


def visitor(door: Door) -> socket.socket:
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.connect(door.address)
    client.settimeout(PATIENCE)
    return client


def say(door: Door, data: bytes) -> dict[str, Any]:
    """Raw bytes in, the answer out."""
    with visitor(door) as client:
        try:
            client.sendall(data)
        except OSError:
            pass  # refused before it was read
        return heard(client)


def ask(door: Door, **request: Any) -> dict[str, Any]:
    return say(door, json.dumps(request).encode() + b"\n")


def heard(client: socket.socket) -> dict[str, Any]:
    text = b""
    try:
        while part := client.recv(1 << 16):
            text += part
    except ConnectionResetError:
        pass  # the answer is here; what was sent behind the request was not read
    answer: dict[str, Any] = json.loads(text)
    return answer


def refused(answer: dict[str, Any], code: int, *words: str) -> None:
    assert answer.get("exit_code") == code, answer
    for word in words:
        assert word in answer["message"]
