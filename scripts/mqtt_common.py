#!/usr/bin/env python3
"""The old helpers by their old names, from `mam.compat`. `LOGS_DIR` is the directory of the audit log."""

from __future__ import annotations

import sys
from pathlib import Path

try:
    import mam  # noqa: F401 - only whether it is installed
except ModuleNotFoundError:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from mam import compat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

LOGS_DIR = compat.default_logs_dir()
"""Read at every call, so that a script can set it."""

update_job_status = compat.update_status
broker_config_from_env = compat.broker_config_from_env
verify_hmac = compat.verify_hmac


def job_log_path(job_id: str) -> Path:
    """The directory of one job's history."""
    return compat.job_log_path(LOGS_DIR, job_id)


def init_job_log(job_id: str, meta: Mapping[str, Any]) -> None:
    """Begin a history: meta.json without secrets, status.json, and the line `registered`."""
    compat.init_job_log(LOGS_DIR, job_id, meta)


def append_event(job_id: str, event: str | Mapping[str, Any], **facts: Any) -> None:
    """One line of history, whole even when others write at the same time."""
    compat.append_event(LOGS_DIR, job_id, event, **facts)


def update_logged_status(job_id: str, status: str) -> None:
    """What status.json says."""
    compat.update_logged_status(LOGS_DIR, job_id, status)


def read_logged_meta(job_id: str) -> dict[str, Any] | None:
    """The record as it was registered."""
    return compat.read_logged_meta(LOGS_DIR, job_id)


def read_logged_status(job_id: str) -> str | None:
    """The status that the log knows."""
    return compat.read_logged_status(LOGS_DIR, job_id)


def iter_logged_events(job_id: str) -> Iterator[dict[str, Any]]:
    """The history, oldest first."""
    return compat.iter_logged_events(LOGS_DIR, job_id)


def list_logged_jobs() -> list[str]:
    """The ids of all jobs with a history."""
    return compat.list_logged_jobs(LOGS_DIR)
