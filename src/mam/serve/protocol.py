"""The connection: limits on the size and the time of a request, which uvicorn leaves to a proxy."""

from __future__ import annotations

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from mam.serve.settings import BODY_SECONDS, HEADER_LIMIT, HEADER_SECONDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio

TRANSPORT = "mam.transport"
"""The key of the scope under which a stream finds its connection, to end it at once."""
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class LimitedProtocol(HttpToolsProtocol):
    """Ends a connection whose request takes too long to arrive, or whose headers are too large."""

    _deadline: asyncio.TimerHandle | None = None
    _head_size = 0
    _is_in_head = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect(HEADER_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_in_head:
            self._head_size += len(data)
            # A body may follow in the same piece, so only what was received before counts.
            if self._head_size - len(data) > HEADER_LIMIT:
                self._end(_TOO_LARGE)
                return
            if self._deadline is None:  # the next request of a connection that was kept open
                self._expect(HEADER_SECONDS)
        super().data_received(data)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope[TRANSPORT] = self.transport  # type: ignore[literal-required]

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._check_head(len(self.url))

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self._check_head(sum(len(one) + len(other) for one, other in self.headers[-1:]))

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._expect(BODY_SECONDS)
        if not self.transport.is_closing():
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._expect(None)
        self._is_in_head, self._head_size = True, 0
        if not self.transport.is_closing():
            super().on_message_complete()

    def _check_head(self, more: int) -> None:
        if more > HEADER_LIMIT:
            self._end(_TOO_LARGE)

    def _expect(self, seconds: float | None) -> None:
        """Something has to arrive completely within this time."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self._end, _TOO_SLOW)

    def _end(self, answer: bytes) -> None:
        self._deadline = None
        if self.transport.is_closing():
            return
        if self._is_in_head or self.cycle is None or not self.cycle.response_started:
            self.transport.write(answer)
        self.transport.close()
