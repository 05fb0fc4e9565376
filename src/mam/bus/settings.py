"""The broker and its connection settings. By default there is none: on one host the store delivers events.

The environment takes precedence over `[broker]` in the user's file, and that over the record's own `broker`. The login
comes from the same source as the host, so that no password reaches another host.
"""

from __future__ import annotations

import os

from mam.config.tables import BROKER
from mam.errors import BadConfig, BadInput, InsecureBroker
from mam.jobs.record import NO_BROKER
from mam.util.frozen import Frozen
from mam.util.hosts import is_loopback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from mam.jobs.record import Job, Json

PORT, TLS_PORT = 1883, 8883
CLIENT_ID_PREFIX = "mam"

_ENVIRONMENT = {
    "password": "MQTT_PASSWORD",
    **{setting.name: setting.variable for setting in BROKER if setting.variable and setting.name != "host"},
}
_WORDS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


class Broker(Frozen):
    """One broker. Its repr never contains the password."""

    host: str
    port: int
    tls: bool = False
    username: str | None = None
    password: str | None = None
    ca_certs: str | None = None
    certfile: str | None = None
    keyfile: str | None = None
    client_id_prefix: str = CLIENT_ID_PREFIX
    insecure: bool = False
    """Whether the user allowed a remote broker without TLS."""
    for_all_jobs: bool = True
    """Whether it serves all jobs; a record's own broker serves only the jobs that name it."""

    @property
    def address(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_local(self) -> bool:
        return is_loopback(self.host)

    def check_safe(self) -> None:
        if not self.tls and not self.is_local and not self.insecure:
            raise InsecureBroker(broker=self.address)

    def __repr__(self) -> str:
        return f"Broker({self.address})"


def configured_broker(table: Mapping[str, Any], *, insecure: bool = False) -> Broker | None:
    """The user's broker: from the environment, otherwise `[broker]` with overrides from the environment."""
    values = {name: os.environ[variable] for name, variable in _ENVIRONMENT.items() if os.environ.get(variable)}
    host = os.environ.get("MQTT_BROKER")
    if not host:
        if not table.get("host"):
            return None
        values = {**_from_table(table), **values}
        host = str(values.pop("host"))
    host, port = host_and_port(host)
    return _broker(host, values if port is None else {"port": port, **values}, insecure=insecure)


def host_and_port(text: str) -> tuple[str, str | None]:
    """Split `host:port`. An IPv6 address with a port needs brackets."""
    name, colon, port = text.rpartition(":")
    if colon and port.isdigit() and (":" not in name or name.endswith("]")):
        return name.strip("[]"), port
    return text.strip("[]"), None


def broker_to_record(table: Mapping[str, Any], named: str | None = None) -> Json | None:
    """The `broker` of a new record: the one `named` as HOST[:PORT], otherwise the user's, and None without either. It
    never holds a login."""
    host = named or os.environ.get("MQTT_BROKER")
    values = {name: os.environ[_ENVIRONMENT[name]] for name in ("port", "tls") if os.environ.get(_ENVIRONMENT[name])}
    if not host:
        if not table.get("host"):
            return None
        host = str(table["host"])
        values = {**{name: table[name] for name in ("port", "tls") if name in table}, **values}
    host, port = host_and_port(host)
    if named is not None:
        values.pop("port", None)  # it belongs to MQTT_BROKER
    found = _broker(host, values if port is None else {**values, "port": port}, insecure=False)
    return {**NO_BROKER, "host": found.host, "port": found.port, "tls": found.tls}


def record_broker(job: Job, secrets: Mapping[str, str], *, insecure: bool = False) -> Broker | None:
    """The broker that the job's record names."""
    return broker_in_record(job.broker, secrets, insecure=insecure)


def broker_in_record(fields: Json, secrets: Mapping[str, str], *, insecure: bool = False) -> Broker | None:
    """The `broker` of a record. Only settings for verifying the broker are added from the environment."""
    host = fields.get("host")
    if not isinstance(host, str) or not host:
        return None
    values = {name: fields[name] for name in ("port", "tls", "username") if fields.get(name) is not None}
    for name in ("tls", "ca_certs", "insecure"):
        if os.environ.get(_ENVIRONMENT[name]):
            values[name] = os.environ[_ENVIRONMENT[name]]
    if "broker_password" in secrets:
        values["password"] = secrets["broker_password"]
    return _broker(host, values, insecure=insecure).replace(for_all_jobs=False)


def _from_table(table: Mapping[str, Any]) -> dict[str, Any]:
    values = {name: value for name, value in table.items() if name != "password_file"}
    for name in ("ca_certs", "certfile", "keyfile"):
        if name in values:
            values[name] = os.path.expanduser(values[name])
    if "password_file" in table and not os.environ.get("MQTT_PASSWORD"):
        values["password"] = _read_password(os.path.expanduser(table["password_file"]))
    return values


def _read_password(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            about = os.fstat(file.fileno())
            if about.st_uid != os.geteuid() or about.st_mode & 0o077:
                raise BadConfig(file=path, problem="holds a password and must be yours alone; `chmod 600` it")
            return file.read(4096).rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        problem = getattr(error, "strerror", None) or "is not text"
        raise BadConfig(file=path, problem=f"the broker's password cannot be read: {problem}") from None


def _broker(host: str, values: dict[str, Any], *, insecure: bool) -> Broker:
    if not host.isascii() or not host.isprintable() or set(host) & set(" /@?#") or len(host) > 253:
        # Not repeated in the message: the text may be a URL with a password.
        raise BadInput(why="the broker's host is not a host name; port, user and password have settings of their own")
    tls = _flag("MQTT_TLS", values.pop("tls", False))
    allowed = _flag("MAM_INSECURE_BROKER", values.pop("insecure", False))
    port = _port(values.pop("port", TLS_PORT if tls else PORT))
    return Broker(host=host.strip("[]"), port=port, tls=tls, insecure=insecure or allowed, **values)


def _flag(name: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).lower()
    if word not in _WORDS:
        raise BadInput(why=f"{name} must be 1 or 0")
    return _WORDS[word]


def _port(value: object) -> int:
    text = str(value)
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 65535:
        raise BadInput(why="MQTT_PORT must be a number between 1 and 65535")
    return int(text)
