"""One connection to a broker, for one thread. A broken connection is not repaired: the caller opens another.

paho would reconnect and resend what it has in memory. Here the offset in the journal decides what to send again, so a
broken connection is discarded with its queue.
"""

from __future__ import annotations

import os
import select
import socket as socket_module
import ssl
import time
from socket import IPPROTO_TCP

from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode, MQTTProtocolVersion
from paho.mqtt.subscribeoptions import SubscribeOptions

from mam.bus.client import Client, MQTTMessage
from mam.bus.tls import tls_context
from mam.errors import BrokerUnavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from paho.mqtt.client import ConnectFlags, DisconnectFlags
    from paho.mqtt.properties import Properties
    from paho.mqtt.reasoncodes import ReasonCode

    from mam.bus.settings import Broker

QOS = 1
KEEPALIVE_SECONDS = 30
_CORK: int | None = getattr(socket_module, "TCP_CORK", getattr(socket_module, "TCP_NOPUSH", None))
_UNSUPPORTED_VERSION = "Unsupported protocol version"
WINDOW = 100
"""Unacknowledged messages at once, unless the broker allows fewer."""


class Connection:
    """`with Connection(broker, role, seconds) as connection:`; every method may raise BrokerUnavailable."""

    def __init__(
        self, broker: Broker, role: str, seconds: float, on_message: Callable[[str, bytes], None] | None = None
    ) -> None:
        """`on_message` is called with each message before the broker gets its acknowledgement."""
        self._broker = broker
        self._message_handler = on_message
        self._connack: ReasonCode | None = None
        self._lost: str | None = None
        self._refused: str | None = None
        self._unacknowledged: set[int] = set()
        self._subscribed = self._is_mqtt3_only = self._corked = False
        self.window = WINDOW
        self._open(role, seconds)

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Send DISCONNECT if that does not block."""
        if self._lost is None:
            self._client.disconnect()
            self._client.loop_write()
        self._close_socket()

    # -- sending -----------------------------------------------------------------------------------------------------

    def send(self, topic: str, message: bytes, *, retain: bool) -> int:
        """Queue a message: a single one is sent at once, one of many with the next `poll` at the latest. Its number is
        in `unacknowledged` until the broker acknowledges it."""
        if self._unacknowledged:
            self._cork(True)
        sent = self._client.publish(topic, message, qos=QOS, retain=retain)
        if sent.rc == MQTTErrorCode.MQTT_ERR_SUCCESS:
            self._unacknowledged.add(sent.mid)
            if self._client.loop_write() == MQTTErrorCode.MQTT_ERR_SUCCESS:
                return sent.mid
        raise self._error(self._lost or "went away")

    @property
    def unacknowledged(self) -> set[int]:
        return self._unacknowledged

    # -- receiving ---------------------------------------------------------------------------------------------------

    def subscribe(self, filters: Iterable[str], seconds: float) -> None:
        """Returns when the broker has accepted all subscriptions."""
        if self._is_mqtt3_only:
            result, _ = self._client.subscribe([(filter_, QOS) for filter_ in filters])
        else:
            result, _ = self._client.subscribe([(filter_, SubscribeOptions(qos=QOS)) for filter_ in filters])
        if result != MQTTErrorCode.MQTT_ERR_SUCCESS:
            raise self._error(self._lost or "went away")
        ends = time.monotonic() + seconds
        while not self._subscribed:
            self.poll(max(0.0, ends - time.monotonic()))
            if time.monotonic() >= ends and not self._subscribed:
                raise self._error("does not answer")

    # -- both --------------------------------------------------------------------------------------------------------

    def poll(self, seconds: float) -> None:
        """Read and write what is ready, waiting at most so long."""
        result = self._poll_socket(seconds)
        if self._refused is not None:
            raise self._error(self._refused)
        if self._lost is not None or result != MQTTErrorCode.MQTT_ERR_SUCCESS:
            raise self._error(self._lost or "went away")

    def _poll_socket(self, seconds: float) -> MQTTErrorCode:
        """paho's own loop uses select(), which is limited to descriptors below 1024."""
        socket = self._client.socket()
        if socket is None:
            return MQTTErrorCode.MQTT_ERR_NO_CONN
        self._cork(False)
        writes = self._client.want_write()
        poll = select.poll()
        poll.register(socket, select.POLLIN | (select.POLLOUT if writes else 0))
        unread = isinstance(socket, ssl.SSLSocket) and socket.pending() > 0
        happened = poll.poll(0 if unread else max(0.0, seconds) * 1000)
        result = MQTTErrorCode.MQTT_ERR_SUCCESS
        if unread or (happened and happened[0][1] & ~select.POLLOUT):
            result = self._client.loop_read()
        result = result or self._client.loop_misc()
        if result == MQTTErrorCode.MQTT_ERR_SUCCESS and self._client.want_write():
            result = self._client.loop_write()
        return result

    def _cork(self, corked: bool) -> None:
        """Put many messages into one packet, so that the broker wakes once for all of them."""
        socket = self._client.socket()
        if corked is not self._corked and _CORK is not None and socket is not None:
            self._corked = corked
            socket.setsockopt(IPPROTO_TCP, _CORK, corked)  # type: ignore[attr-defined]

    def _close_socket(self) -> None:
        """paho closes its socket only when it is garbage-collected."""
        socket = self._client.socket()
        if socket is not None:
            socket.close()

    def _open(self, role: str, seconds: float) -> None:
        """Connect with MQTT 5. Only a broker on this host may be older: MQTT 3 cannot report why an event was
        rejected."""
        ends = time.monotonic() + seconds
        self._client = self._new_client(role, MQTTProtocolVersion.MQTTv5)
        try:
            self._connect(ends)
        except BrokerUnavailable:
            if not (self._is_mqtt3_only and self._broker.is_local):
                raise
            self._lost = self._refused = None
            self._client = self._new_client(role, MQTTProtocolVersion.MQTTv311)
            self._connect(ends)

    def _new_client(self, role: str, version: MQTTProtocolVersion) -> Client:
        broker = self._broker
        client = Client(
            CallbackAPIVersion.VERSION2,
            client_id=f"{broker.client_id_prefix[:32]}-{role}-{os.urandom(6).hex()}",
            protocol=version,
            reconnect_on_failure=False,
        )
        client.max_inflight_messages_set(WINDOW)
        if broker.username is not None or broker.password is not None:
            client.username_pw_set(broker.username or "", broker.password)
        if broker.tls:
            client.tls_set_context(tls_context(broker))
        client.on_socket_register_write = _write_later
        client.on_connect = self._on_connect
        client.on_disconnect = self._on_disconnect
        client.on_publish = self._on_publish
        client.on_subscribe = self._on_subscribe
        client.on_message = self._on_paho_message
        return client

    def _connect(self, ends: float) -> None:
        self._client.connect_timeout = max(0.1, ends - time.monotonic())
        try:
            self._client.connect(self._broker.host, self._broker.port, keepalive=KEEPALIVE_SECONDS)
            while self._connack is None:
                left = ends - time.monotonic()
                if left <= 0:
                    raise self._error("does not answer")
                self.poll(left)
        except (OSError, ValueError) as error:
            self._close_socket()
            raise self._error(_describe(error)) from None
        except BrokerUnavailable:
            self._close_socket()
            raise

    def _error(self, problem: str) -> BrokerUnavailable:
        return BrokerUnavailable(broker=self._broker.address, problem=problem)

    # -- what paho calls ---------------------------------------------------------------------------------------------

    def _on_connect(
        self, _client: Client, _userdata: Any, _flags: ConnectFlags, reason: ReasonCode, properties: Properties | None
    ) -> None:
        if reason.is_failure:
            self._is_mqtt3_only = reason.getName() == _UNSUPPORTED_VERSION
            self._refused = f"refused the login ({reason})"
            return
        self._connack = reason
        self.window = min(WINDOW, getattr(properties, "ReceiveMaximum", WINDOW))

    def _on_disconnect(
        self,
        _client: Client,
        _userdata: Any,
        _flags: DisconnectFlags,
        reason: ReasonCode,
        _properties: Properties | None,
    ) -> None:
        self._lost = "closed the connection" if self._connack is not None else "closed the connection at once"
        if reason.value not in (0, 128):
            self._lost += f" ({reason})"
        elif self._connack is None:
            self._lost += self._close_hint()

    def _close_hint(self) -> str:
        """A broker that does not understand the first bytes closes the connection without a reason."""
        if not self._broker.tls:
            return "; it may require TLS (MQTT_TLS=1)"
        return "" if self._broker.certfile is not None else "; it may require a client certificate (MQTT_CERTFILE)"

    def _on_publish(
        self, _client: Client, _userdata: Any, number: int, reason: ReasonCode, _properties: Properties
    ) -> None:
        if reason.is_failure:
            self._refused = f"rejected an event ({reason})"
        else:
            self._unacknowledged.discard(number)

    def _on_subscribe(
        self, _client: Client, _userdata: Any, _number: int, reasons: list[ReasonCode], _properties: Properties | None
    ) -> None:
        if any(reason.is_failure for reason in reasons):
            self._refused = f"rejected the subscription ({reasons[0]})"
        self._subscribed = True

    def _on_paho_message(self, _client: Client, _userdata: Any, message: MQTTMessage) -> None:
        try:
            topic = message.topic
        except UnicodeDecodeError:
            return
        if self._message_handler is not None:
            self._message_handler(topic, bytes(message.payload))


def _write_later(_client: Client, _userdata: Any, _socket: Any) -> None:
    """With this callback set, paho leaves writing to the caller's `loop_write`."""


def _describe(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"has a certificate that is not trusted ({error.verify_message.rstrip('.')})"
    if isinstance(error, ssl.SSLError):
        return f"failed the TLS handshake ({(error.reason or 'handshake failed').lower().replace('_', ' ')})"
    if isinstance(error, TimeoutError):
        return "does not answer"
    if isinstance(error, OSError):
        return f"cannot be reached ({(error.strerror or str(error)).lower()})"
    return f"cannot be used ({error})"
