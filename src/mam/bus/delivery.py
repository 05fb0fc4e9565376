"""Deliver an event that was just stored to the broker."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.bus.settings import Broker
    from mam.config.settings import Config
    from mam.jobs.record import Job
    from mam.stores.port import Store

SECONDS = 3.0
"""How long a command tries to deliver before it leaves the event to the next sender."""


def broker_for(store: Store, job: Job, config: Config, *, insecure: bool = False) -> Broker | None:
    """The user's broker, otherwise the one in the job's record."""
    table = config.broker
    if not (os.environ.get("MQTT_BROKER") or table.get("host") or job.broker.get("host")):
        return None
    from mam.bus.settings import configured_broker, record_broker

    found = configured_broker(table, insecure=insecure)
    if found is not None or not job.broker.get("host"):
        return found
    return record_broker(job, store.secrets(job.job_id), insecure=insecure)


def deliver(store: Store, broker: Broker, report: Callable[[str], None], seconds: float = SECONDS) -> None:
    """Send new events, unless a resident relay runs: the journal wakes that one."""
    from mam.bus.relay_state import relay_locks
    from mam.errors import BrokerUnavailable, MamError

    broker.check_safe()
    if relay_locks(store, broker).has_resident():
        return
    require_client()
    from mam.bus.relay import Relay

    try:
        Relay(store, broker, report).deliver(seconds)
    except BrokerUnavailable as away:
        report(f"{away} The event is stored and waits in the journal.")
    except MamError as error:
        report(f"the event is stored and waits in the journal: {error}")


def require_client() -> None:
    from mam.errors import BadInput

    try:
        import mam.bus.client  # noqa: F401 - only whether it is installed
    except ImportError:
        from mam.util.extras import command_for

        raise BadInput(why=f"MQTT needs the extra `mqtt`: {command_for('mqtt')}") from None
