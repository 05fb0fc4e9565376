"""Sends a message to a push service, and says in one word what became of it.

A browser names the address of its push service, and with it any host. So mam looks the name up, refuses private
addresses, connects to the address that it has checked, and follows no redirect.
"""

from __future__ import annotations

import http.client
import socket
import ssl
from ipaddress import ip_address
from urllib.parse import urlsplit

from mam.jobs.notices import ACCEPTED, FAILED, GONE, REFUSED
from mam.util.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.push.message import Message

SECONDS = 10.0
_OK, _GONE, _LATER = (200, 201, 202, 204), (404, 410), (408, 425, 429)


class Delivery(Frozen):
    outcome: str
    why: str | None = None


def deliver(message: Message, *, allow_private: bool) -> Delivery:
    """`allow_private`: also to private addresses, and without TLS to this host."""
    parts = urlsplit(message.endpoint)
    host, is_https = parts.hostname or "", parts.scheme == "https"
    try:
        port = parts.port or (443 if is_https else 80)
        address = _address_of(host, port)
    except (OSError, ValueError):
        return Delivery(outcome=FAILED, why=f"{host} has no address")
    if not address.is_global and not allow_private:
        return Delivery(outcome=REFUSED, why=f"{host} has a private address; `push.private` in the settings allows it")
    if not is_https and not (address.is_loopback and allow_private):
        return Delivery(outcome=REFUSED, why="its push service is not reached over https")
    try:
        status = _post(message, host, port, str(address), is_https=is_https)
    except (OSError, http.client.HTTPException) as error:
        return Delivery(outcome=FAILED, why=f"{host} did not answer: {type(error).__name__}")
    return _judged(status)


def _judged(status: int) -> Delivery:
    if status in _OK:
        return Delivery(outcome=ACCEPTED)
    why = f"the push service answered {status}"
    if status in _GONE:
        return Delivery(outcome=GONE, why=why)
    return Delivery(outcome=FAILED if status in _LATER or status >= 500 else REFUSED, why=why)


def _address_of(host: str, port: int) -> IPv4Address | IPv6Address:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return ip_address(str(found[0][4][0]).partition("%")[0])


def _post(message: Message, host: str, port: int, address: str, *, is_https: bool) -> int:
    connection = http.client.HTTPConnection(host, port, timeout=SECONDS)
    connection.sock = socket.create_connection((address, port), SECONDS)
    try:
        if is_https:
            connection.sock = ssl.create_default_context().wrap_socket(connection.sock, server_hostname=host)
        parts = urlsplit(message.endpoint)
        path = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
        connection.request("POST", path, message.body, message.headers)
        return connection.getresponse().status
    finally:
        connection.close()


if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv6Address
