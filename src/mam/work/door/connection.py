"""One connection to a door. It reads and writes without ever blocking."""

from __future__ import annotations

import time

from mam.errors import BadInput, StoreUnavailable
from mam.util.encoding import to_bytes
from mam.work.door.handlers import BODY_LIMIT, DoorRequest, body_bytes, error_answer, parse_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from socket import socket
    from typing import Any

    from mam.errors import MamError
    from mam.work.door.child_waits import ParkedWait
    from mam.work.door.question_waits import ParkedQuestion
    from mam.work.door.server import Door

LINE_LIMIT = 1 << 20
"""The limit for the line of a request. Long texts follow the line, so that its JSON stays small."""

READ_SECONDS = 10.0
WRITE_SECONDS = 30.0
TURN_SECONDS = 60.0

_CHUNK = 1 << 18


class Connection:
    """Reads one request, holds it until its turn comes, writes one answer."""

    def __init__(self, sock: socket, door: Door) -> None:
        self.sock = sock
        self.door = door
        self.wait: ParkedWait | ParkedQuestion | None = None
        self.request: DoorRequest | None = None
        self.ends = time.monotonic() + READ_SECONDS
        self.size = 0
        """Bytes of the long text that the request announced."""
        self._inbox = bytearray()
        self._fields: dict[str, Any] | None = None
        self._outbox = memoryview(b"")

    @property
    def unsent(self) -> int:
        """Bytes of the answer that the client has not read yet."""
        return len(self._outbox)

    def read(self) -> bool:
        """Reads what is there; returns False if the client is gone. `request` is set when the request is complete."""
        try:
            part = self.sock.recv(_CHUNK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        if not part:
            return False
        before = len(self._inbox)
        self._inbox += part
        if self._fields is None:
            self._read_line(before)
        if self._fields is not None and len(self._inbox) >= self.size:
            self._take()
        return True

    def answer(self, value: dict[str, Any]) -> None:
        self._inbox = bytearray()
        self.size = 0
        self._outbox = memoryview(to_bytes(value) + b"\n")
        self.ends = time.monotonic() + WRITE_SECONDS

    def refuse(self, error: MamError) -> None:
        self.answer(error_answer(error))

    def write(self) -> bool:
        """Returns whether there is more to write to a client that still reads."""
        try:
            while self._outbox:
                self._outbox = self._outbox[self.sock.send(self._outbox) :]
        except BlockingIOError:
            return True
        except OSError:
            self._outbox = memoryview(b"")
        return False

    def _read_line(self, before: int) -> None:
        end = self._inbox.find(b"\n", before)
        if end > LINE_LIMIT or (end < 0 and len(self._inbox) > LINE_LIMIT):
            raise BadInput(why=f"a line of more than {LINE_LIMIT:,} bytes is rejected; long texts follow the line")
        if end < 0:
            return
        fields = parse_line(bytes(self._inbox[:end]))
        size = body_bytes(fields)
        if size > self.door.room:
            raise StoreUnavailable(store=self.door.address, problem="too many long texts at once; try again")
        self._fields, self.size = fields, size
        del self._inbox[: end + 1]

    def _take(self) -> None:
        assert self._fields is not None
        body = None
        if "body" in self._fields:
            try:
                body = self._inbox[: self.size].decode()
            except UnicodeDecodeError as error:
                raise BadInput(why=f"the text is not valid UTF-8 at byte {error.start}") from None
        self.request = DoorRequest(verb=self._fields["verb"], fields=self._fields, body=body)
        self._inbox = bytearray()
        self.ends = time.monotonic() + TURN_SECONDS


ROOM = 3 * BODY_LIMIT
"""The limit for the long texts that one door holds at once."""
