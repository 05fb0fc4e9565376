"""The functions of the old library (`import registry`) by their old names, over today's registry.

`scripts/registry.py` and `scripts/mqtt_common.py` export this module. Errors are those of `mam.errors`.
"""

from __future__ import annotations

import os
from pathlib import Path

from mam.audit import log
from mam.audit.sync import AuditLog
from mam.config.settings import load_config
from mam.errors import BadInput, MamError
from mam.jobs.status import parse_status
from mam.location.stores import FILES, STORE_NAMES, StoreLocation, check_ownership, locate, open_registry
from mam.stores.files.lock import registry_lock as _lock_directory
from mam.stores.port import Query
from mam.util.clock import SystemClock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any, TypeVar

    from mam.registry import Registry

    Answer = TypeVar("Answer")

    Directory = str | os.PathLike[str] | None
    Record = dict[str, Any]


# -- the registry ----------------------------------------------------------------------------------------------------


def register_job(
    prompt: str,
    agent: str,
    agent_session: str | None = None,
    timeout_sec: int = 3600,
    idle_timeout_sec: int = 120,
    expected_artifacts: Sequence[str] = (),
    *,
    registry_dir: Directory = None,
    auth_token: str | None = None,
) -> str:
    """Registers a pending job and returns its id. Creates the store if there is none."""
    from mam.bus.settings import broker_to_record

    broker = broker_to_record(load_config().broker)

    def register(registry: Registry) -> str:
        registration = registry.register(
            prompt=prompt,
            agent=agent,
            label=agent_session,
            timeout_sec=timeout_sec,
            idle_timeout_sec=idle_timeout_sec,
            artifacts=expected_artifacts,
            workdir=os.getcwd(),
            origin_host=os.uname().nodename,
            broker=broker,
            auth_token=auth_token,
        )
        return registration.job.job_id

    return _with_registry(registry_dir, register, create=True)


def pick_pending(agent_session: str, registry_dir: Directory = None) -> str | None:
    """Claims the next pending job of a label and returns its id, or None."""
    owner = f"{os.uname().nodename}:{os.getpid()}"
    job = _with_registry(registry_dir, lambda registry: registry.pick(agent_session, owner=owner))
    return None if job is None else job.job_id


def update_status(job_id: str, status: str, registry_dir: Directory = None) -> Record:
    """Sets the status as `status --set` does, and returns the record."""
    to = parse_status(status)
    return _with_registry(registry_dir, lambda registry: registry.set_status(job_id, to).to_json())


def next_seq(job_id: str, registry_dir: Directory = None) -> int:
    """Reserves the next sequence number."""
    return _with_registry(registry_dir, lambda registry: registry.next_seq(job_id))


def get_job(job_id: str, registry_dir: Directory = None) -> Record:
    """The record of one job, by its id or a unique prefix."""
    return _with_registry(registry_dir, lambda registry: registry.get(job_id).to_json())


load_job = get_job


def list_jobs(registry_dir: Directory = None) -> list[Record]:
    """All records, newest first."""
    return _with_registry(registry_dir, lambda registry: [job.to_json() for job in registry.select(Query())])


def registry_lock(registry_dir: Directory = None) -> _lock_directory:
    """`with registry_lock(directory):` excludes other writers; this thread can still call the functions above."""
    found = locate(None, _text(registry_dir), load_config())
    if found.kind != FILES:
        raise BadInput(
            why=f"only a directory of files has a lock to hold; the store here, {found.why}, is {found.kind}"
        )
    check_ownership(found)
    return _lock_directory(found.address)


def _with_registry(registry_dir: Directory, ask: Callable[[Registry], Answer], *, create: bool = False) -> Answer:
    registry = open_registry(None, _text(registry_dir), load_config(), create=create)
    try:
        return ask(registry)
    finally:
        registry.store.close()


def _text(directory: Directory) -> str | None:
    return None if directory is None else os.fspath(directory)


def default_registry_dir() -> str:
    """The directory of the store, relative to the working directory where it is below it. `.mam/jobs` if there is no
    store, or if it is not a directory."""
    located = _default_location()
    here = f"{os.getcwd()}/"
    return located.path.removeprefix(here) if located.kind == FILES else STORE_NAMES[0]


def secrets_of(job_id: str, registry_dir: Directory = None) -> dict[str, str]:
    """The broker's password and the token of a job; a record has neither."""
    return _with_registry(registry_dir, lambda registry: registry.store.secrets(job_id))


def _default_location() -> StoreLocation:
    try:
        return locate(None, None, load_config())
    except MamError:
        path = os.path.join(os.getcwd(), STORE_NAMES[0])
        return StoreLocation(kind=FILES, address=path, why="the default", exists=False)


# -- events --------------------------------------------------------------------------------------------------------


def verify_hmac(message: bytes | str | Record, token: str) -> bool:
    """Whether a message is signed with the job's token. An object is first encoded as mam sends it."""
    from mam.events.wire import InvalidMessage, parse_wire
    from mam.util.encoding import to_bytes

    try:
        if not isinstance(message, bytes):
            message = message.encode() if isinstance(message, str) else to_bytes(message)
        parse_wire(message, token)
    except (InvalidMessage, TypeError, ValueError):
        return False
    return True


# -- the audit log; every writer is best effort ------------------------------------------------------------------------


def default_logs_dir() -> Path:
    """The logs directory of the old helpers: DELEGATE_JOB_LOGS_DIR, else beside the store (maybe in `.hermes`)."""
    return Path(_default_location().logs_dir)


def job_log_path(logs_dir: Directory, job_id: str) -> Path:
    return Path(log.job_dir(_logs(logs_dir), job_id))


def init_job_log(logs_dir: Directory, job_id: str, meta: Mapping[str, Any]) -> None:
    AuditLog(_logs(logs_dir)).begin_local(job_id, dict(meta), _now())


def append_event(logs_dir: Directory, job_id: str, event: str | Mapping[str, Any], **facts: Any) -> None:
    """Appends one line, with a timestamp if it has none; `event` is the whole line or its name."""
    line = {"event": event} if isinstance(event, str) else dict(event)
    AuditLog(_logs(logs_dir)).append_local(job_id, {"timestamp": _now(), "job_id": job_id, **line, **facts})


def update_logged_status(logs_dir: Directory, job_id: str, status: str) -> None:
    AuditLog(_logs(logs_dir)).set_status_local(job_id, status, _now())


def read_logged_meta(logs_dir: Directory, job_id: str) -> Record | None:
    return log.read_meta(_logs(logs_dir), job_id)


def read_logged_status(logs_dir: Directory, job_id: str) -> str | None:
    return log.read_status(_logs(logs_dir), job_id)


def iter_logged_events(logs_dir: Directory, job_id: str) -> Iterator[Record]:
    return log.iter_lines(_logs(logs_dir), job_id)


def list_logged_jobs(logs_dir: Directory) -> list[str]:
    return log.list_jobs(_logs(logs_dir))


def _logs(directory: Directory) -> str:
    return os.fspath(default_logs_dir() if directory is None else directory)


def _now() -> str:
    return SystemClock().now().second
