"""A push service on loopback, and a browser that subscribed there and decrypts what it gets."""

from __future__ import annotations

import base64
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from threading import Thread
from typing import TYPE_CHECKING, Any

import http_ece
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from py_vapid import Vapid02

if TYPE_CHECKING:
    from types import TracebackType


class PushService:
    """It answers each message with `status`, and keeps what it took."""

    def __init__(self) -> None:
        self.status = 201
        self.got: Queue[tuple[str, dict[str, str], bytes]] = Queue()
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                service.got.put((self.path, {name.lower(): text for name, text in self.headers.items()}, body))
                self.send_response(service.status)
                if 300 <= service.status < 400:
                    self.send_header("location", f"{service.url}/elsewhere")
                self.end_headers()

            def log_message(self, *_given: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self) -> PushService:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()


class PushedBrowser:
    """The keys of a browser, as its Push API makes them."""

    def __init__(self, service: PushService, name: str = "phone") -> None:
        self._service = service
        self._private = generate_private_key(SECP256R1())
        self._auth = b"sixteen  letters"
        self.path = f"/send/{name}"

    def subscription(self, key: str) -> dict[str, str]:
        point = self._private.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        return {
            "endpoint": self._service.url + self.path,
            "p256dh": _text(point),
            "auth": _text(self._auth),
            "key": key,
        }

    def next(self, key: str, timeout: float = 20) -> tuple[dict[str, Any], dict[str, str]]:
        """The next message, decrypted, and its headers, whose signature by this key has been checked."""
        path, headers, body = self._service.got.get(timeout=timeout)
        assert path == self.path
        assert Vapid02.verify(headers["authorization"])
        assert headers["authorization"].endswith(f"k={key}")
        assert headers["content-encoding"] == "aes128gcm"
        text = http_ece.decrypt(body, private_key=self._private, auth_secret=self._auth, version="aes128gcm")
        found: dict[str, Any] = json.loads(text)
        return found, headers


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
