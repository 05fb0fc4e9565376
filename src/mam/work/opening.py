"""A worker over the store that the user means."""

from __future__ import annotations

from mam.audit.mirror import AuditLog
from mam.bus.resident import resident_relay
from mam.registry import Registry
from mam.work.crew import Crew
from mam.work.directory import work_directory
from mam.work.worker import Worker
from mam.workspace import open_store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.config import Config
    from mam.registry import Shadow
    from mam.stores.port import Store
    from mam.work.worker import Orders
    from mam.workspace import Located


class LaterShadow:
    """The audit log of a worker: refusals are told at once, everything else is copied by the thread that follows."""

    def __init__(self, shadow: Shadow) -> None:
        self._shadow = shadow

    def follow(self, store: Store) -> None:
        """Not now."""

    def refused(self, store: Store, job_id: str, verb: str, why: str) -> None:
        self._shadow.refused(store, job_id, verb, why)


def open_worker(located: Located, config: Config, orders: Orders, **settings: Any) -> tuple[Worker, Crew]:
    """`settings` are those of Crew."""
    shadow = AuditLog(located.logs_dir)
    store = open_store(located, config)
    registry = Registry(store, LaterShadow(shadow), require_attempt=config.require_attempt)
    crew = Crew(registry, config, work_directory(store.address), logs_dir=located.logs_dir, **settings)
    return Worker(crew, orders, shadow, resident_relay(store, config, crew.complain)), crew
