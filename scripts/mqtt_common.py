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
from mam.bus import old_helpers
from mam.bus.old_helpers import BrokerConfig, broker_config_from_env, make_client, with_retry
from mam.compat import verify_hmac
from mam.jobs.record import SCHEMA_VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager
    from typing import Any

    Directory = str | os.PathLike[str] | None

__all__ = [
    "DEFAULT_REGISTRY_DIR",
    "LOGS_DIR",
    "SCHEMA_VERSION",
    "BrokerConfig",
    "append_event",
    "broker_config_from_env",
    "broker_config_from_job",
    "init_job_log",
    "iter_logged_events",
    "job_log_path",
    "list_logged_jobs",
    "load_job",
    "make_client",
    "next_seq",
    "read_logged_meta",
    "read_logged_status",
    "registry_lock",
    "update_job_status",
    "update_logged_status",
    "verify_hmac",
    "with_retry",
]

LOGS_DIR = compat.default_logs_dir()
"""Read at every call, so that a script can set it."""

DEFAULT_REGISTRY_DIR = compat.default_registry_dir()
"""Given to a function below, it means the store that mam would use here, also if that is a database."""


class Record(dict[str, "Any"]):
    """A record, and the registry that it came from."""

    registry_dir: Directory = None


def load_job(job_id: str, registry_dir: Directory = None) -> Record:
    """The record of one job, by its id or a unique prefix."""
    record = Record(compat.get_job(job_id, _named(registry_dir)))
    record.registry_dir = _named(registry_dir)
    return record


def registry_lock(registry_dir: Directory = None) -> AbstractContextManager[None]:
    """`with registry_lock(directory):` excludes other writers."""
    return compat.registry_lock(_named(registry_dir))


def next_seq(job_id: str, registry_dir: Directory = None) -> int:
    """Reserves the next sequence number."""
    return compat.next_seq(job_id, _named(registry_dir))


def update_job_status(job_id: str, status: str, registry_dir: Directory = None) -> dict[str, Any]:
    """Sets the status as `status --set` does, and returns the record."""
    return compat.update_status(job_id, status, _named(registry_dir))


def broker_config_from_job(job: Mapping[str, Any]) -> BrokerConfig:
    """The broker of the environment or the settings, otherwise that of the record."""
    secrets = compat.secrets_of(job["job_id"], job.registry_dir) if isinstance(job, Record) else {}
    return old_helpers.broker_config_from_job(job, secrets)


def _named(registry_dir: Directory) -> Directory:
    return None if registry_dir == DEFAULT_REGISTRY_DIR else registry_dir


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
