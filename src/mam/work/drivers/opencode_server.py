"""`opencode serve` on loopback, with a password that only this process and the server know."""

from __future__ import annotations

import base64
import json
import os
import secrets
import subprocess
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

from mam.util.strict_json import safe_json
from mam.work.drivers.json_lines import end_group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mam.jobs.record import Json

USER, PASSWORD = "opencode", "OPENCODE_SERVER_PASSWORD"
QUESTIONS = "OPENCODE_ENABLE_QUESTION_TOOL"
CALL_SECONDS = 120.0
LINE_LIMIT = 64 << 20
"""A longer event is skipped."""
_LISTENING = "listening on "


class ServerError(Exception):
    """The server answered with an error, or is gone; the text says which."""

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


class OpenCodeServer:
    def __init__(self, argv: Sequence[str]) -> None:
        """Its stderr, with its log, is the caller's. It has a process group, since its launcher ignores SIGTERM."""
        password = secrets.token_urlsafe(32)
        env = {**os.environ, PASSWORD: password, QUESTIONS: "1"}
        self._authorization = "Basic " + base64.b64encode(f"{USER}:{password}".encode()).decode()
        self._process = subprocess.Popen(
            argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, process_group=0
        )
        self._address = self._read_address()

    def _read_address(self) -> tuple[str, int]:
        """The server prints it when it listens."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            _, found, url = line.decode(errors="replace").strip().rpartition(_LISTENING)
            parts = urlsplit(url) if found else None
            if parts is not None and parts.hostname in ("127.0.0.1", "localhost") and parts.port:
                return parts.hostname, parts.port
        code = self._process.wait()
        raise ServerError(f"it ended with exit code {code} before it listened")

    def call(self, method: str, path: str, body: Json | None = None) -> object:
        """The answer's JSON; None if it has none. ServerError for a refusal. Any thread may call."""
        connection = HTTPConnection(*self._address, timeout=CALL_SECONDS)
        try:
            content = None if body is None else json.dumps(body).encode()
            headers = {"Authorization": self._authorization, "Content-Type": "application/json"}
            connection.request(method, path, content, headers)
            answer = connection.getresponse()
            text = answer.read(LINE_LIMIT)
        except (OSError, HTTPException) as error:
            raise ServerError(f"{method} {path.partition('?')[0]}: {error or type(error).__name__}") from None
        finally:
            connection.close()
        if answer.status >= 400:
            raise ServerError(_message(text) or f"{method} {path} failed with HTTP {answer.status}", answer.status)
        return _parsed(text)

    def events(self) -> EventStream:
        return EventStream(self._address, self._authorization)

    def close(self) -> None:
        end_group(self._process)


class EventStream:
    """The server's events from now on. The connection is made at once, so that nothing is missed."""

    def __init__(self, address: tuple[str, int], authorization: str) -> None:
        self._connection = HTTPConnection(*address, timeout=CALL_SECONDS)
        try:
            headers = {"Authorization": authorization, "Accept": "text/event-stream"}
            self._connection.request("GET", "/event", headers=headers)
            self._response = self._connection.getresponse()
        except (OSError, HTTPException) as error:
            raise ServerError(f"GET /event: {error or type(error).__name__}") from None
        if self._response.status != 200:
            raise ServerError(f"GET /event failed with HTTP {self._response.status}", self._response.status)
        if self._connection.sock is not None:
            self._connection.sock.settimeout(None)  # a model may be silent for hours

    def __iter__(self) -> Iterator[Json]:
        """Until the server closes the stream."""
        while True:
            try:
                line = self._response.readline(LINE_LIMIT)
            except (OSError, HTTPException, ValueError):
                return
            if not line:
                return
            name, _, data = line.partition(b":")
            event = _parsed(data) if name == b"data" else None
            if isinstance(event, dict):
                yield event


def _parsed(text: bytes) -> object:
    try:
        return safe_json(text) if text.strip() else None
    except ValueError:
        return None


def _message(text: bytes) -> str | None:
    found = _parsed(text)
    data = found.get("data") if isinstance(found, dict) else None
    said = data.get("message") if isinstance(data, dict) else found.get("message") if isinstance(found, dict) else None
    return said if isinstance(said, str) else None
