"""Opens a worker on the store that the user selected."""

from __future__ import annotations

from mam.audit.sync import AuditLog
from mam.bus.background_relay import WorkerRelays
from mam.jobs.lease import LOCAL_SECONDS, NETWORK_SECONDS
from mam.location.stores import POSTGRES, open_store
from mam.registry import Registry
from mam.work.context import WorkerContext
from mam.work.state_dirs import work_directory
from mam.work.worker import Worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.config.settings import Config
    from mam.jobs.change import AuditRecord
    from mam.location.stores import StoreLocation
    from mam.registry import AuditSink
    from mam.stores.port import Store
    from mam.work.worker import WorkerOptions


class DeferredAuditSink:
    """The audit log of a worker: rejections are written at once, everything else is copied by the JournalFollower."""

    def __init__(self, shadow: AuditSink) -> None:
        self._shadow = shadow

    def follow(self, store: Store) -> None:
        """Left to the JournalFollower."""

    def refused(self, store: Store, job_id: str, verb: str, why: str) -> None:
        self._shadow.refused(store, job_id, verb, why)

    def history(self, store: Store, job_id: str) -> list[AuditRecord]:
        return self._shadow.history(store, job_id)


def open_worker(
    located: StoreLocation, config: Config, options: WorkerOptions, **settings: Any
) -> tuple[Worker, WorkerContext]:
    """`settings` are keyword arguments of WorkerContext."""
    if settings.get("lease_seconds") is None:
        settings["lease_seconds"] = NETWORK_SECONDS if located.kind == POSTGRES else LOCAL_SECONDS
    shadow = AuditLog(located.logs_dir)
    store = open_store(located, config, settings["lease_seconds"])
    registry = Registry(store, DeferredAuditSink(shadow), require_attempt=config.require_attempt)
    context = WorkerContext(registry, config, work_directory(store.address), logs_dir=located.logs_dir, **settings)
    return Worker(context, options, shadow, WorkerRelays(store, config, context.say_once)), context
