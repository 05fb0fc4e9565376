"""Jobs for the unit tests, made by the acts of the product, so that each can exist."""

from __future__ import annotations

from typing import Any

from mam.jobs import acts
from mam.jobs.draft import draft_job
from mam.jobs.record import Job
from mam.jobs.status import Status
from mam.util.clock import Moment

NOW = Moment(wall_ms=1_767_225_600_000, boot_ms=5_000, boot_id="boot-1")


def later(seconds: float) -> Moment:
    return Moment(
        wall_ms=NOW.wall_ms + round(seconds * 1000), boot_ms=NOW.boot_ms + round(seconds * 1000), boot_id="boot-1"
    )


def pending(**choices: Any) -> Job:
    choices = {"job_id": "abc12345", "prompt": "sort ten numbers", "agent": "claude-code", **choices}
    return acts.register(draft_job(**choices), 1, NOW).job


def running(lease_seconds: float | None = 60, **choices: Any) -> Job:
    return acts.claim(pending(**choices), NOW, owner="worker", lease_seconds=lease_seconds).job


def in_status(status: Status) -> Job:
    match status:
        case Status.PENDING:
            return pending()
        case Status.WAITING:
            return pending(due_ms=NOW.wall_ms + 60_000)
        case Status.RUNNING:
            return running()
        case Status.COMPLETED:
            return acts.complete(running(), NOW, attempt=1, result="done", checked=False).job
        case Status.ERROR:
            return acts.fail(running(), NOW, attempt=1, reason="broken").job
        case Status.CANCELLED:
            return acts.cancel(running(), NOW, attempt=None, reason=None).job
