"""The MQTT helpers of the old mqtt_common.py: broker settings as an object, and paho's own client."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field

from mam.bus.delivery import require_client
from mam.bus.settings import CLIENT_ID_PREFIX, PORT, Broker, broker_in_record, configured_broker
from mam.config.settings import load_config
from mam.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeVar

    from paho.mqtt.client import Client

    Answer = TypeVar("Answer")

RETRIES, FIRST_PAUSE_SECONDS = 5, 0.5


@dataclass(frozen=True)
class BrokerConfig:
    """One broker; `host` is None if there is none."""

    host: str | None = None
    port: int = PORT
    tls: bool = False
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_certs: str | None = None
    certfile: str | None = None
    keyfile: str | None = None
    client_id_prefix: str = CLIENT_ID_PREFIX


def broker_config_from_env() -> BrokerConfig:
    """The broker of the environment, otherwise that of `[broker]` in the settings."""
    return _as_config(configured_broker(load_config().broker))


def broker_config_from_job(job: Mapping[str, Any], secrets: Mapping[str, str] | None = None) -> BrokerConfig:
    """The broker of the environment or the settings, otherwise that of the record."""
    found = configured_broker(load_config().broker)
    return _as_config(found or broker_in_record(job.get("broker") or {}, secrets or {}))


def make_client(broker: BrokerConfig, name: str = "client") -> Client:
    """paho's client with login, TLS and MQTT 5, not yet connected. Its callbacks are those of paho's version 2."""
    if broker.host is None:
        raise BadInput(why="no broker is configured, and the job's record names none")
    require_client()
    from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

    from mam.bus.client import Client
    from mam.bus.tls import tls_context

    checked = Broker(**{**vars(broker), "insecure": os.environ.get("MAM_INSECURE_BROKER") == "1"})
    checked.check_safe()
    client = Client(
        CallbackAPIVersion.VERSION2,
        client_id=f"{broker.client_id_prefix[:32]}-{name[:32]}-{os.urandom(6).hex()}",
        protocol=MQTTProtocolVersion.MQTTv5,
    )
    if broker.username is not None or broker.password is not None:
        client.username_pw_set(broker.username or "", broker.password)
    if broker.tls:
        client.tls_set_context(tls_context(checked))
    return client


def with_retry(action: Callable[[], Answer], attempts: int = RETRIES, delay: float = FIRST_PAUSE_SECONDS) -> Answer:
    """The result of `action`, which is repeated after an OSError with pauses that double."""
    for number in range(1, attempts):
        try:
            return action()
        except OSError:
            time.sleep(delay * 2 ** (number - 1))
    return action()


def _as_config(broker: Broker | None) -> BrokerConfig:
    if broker is None:
        return BrokerConfig()
    return BrokerConfig(**{name: getattr(broker, name) for name in BrokerConfig.__dataclass_fields__})
